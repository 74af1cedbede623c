package contract

// Types of application errors, as they cross the activity boundary. The
// workflow switches on these; activities.translate is the only place that
// makes them.
const (
	ErrorInvalidPlan           = "InvalidPlan"
	ErrorRepositoryUnreachable = "RepositoryUnreachable"
	ErrorBaseUnknown           = "BaseUnknown"
	ErrorBranchMoved           = "BranchMoved"
	ErrorWorktreeBusy          = "WorktreeBusy"
	ErrorWorktreeMissing       = "WorktreeMissing"
	ErrorArtifactMissing       = "ArtifactMissing"
	ErrorDiskFull              = "DiskFull"
	ErrorSuperseded            = "Superseded" // the fence names another attempt
	ErrorServiceUnready        = "ServiceUnready"
	ErrorAnswerRefused         = "AnswerRefused" // an operator's answer does not apply
	ErrorInternal              = "Internal"
	ErrorProcessAlive          = "ProcessAlive"  // something could not be ended; the details are an Unproven
	ErrorRequestReused         = "RequestReused" // a request id came back with another payload
	ErrorRunClosing            = "RunClosing"    // an order came too late
)
