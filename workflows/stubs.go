package workflows

import "mendflow/activities"

// Nil receivers that give activities their names; nothing is ever called on them here.
var (
	repository  *activities.Repository
	attempt     *activities.Attempt
	landing     *activities.Landing
	gateRunner  *activities.Gate
	artifact    *activities.Artifacts
	publication *activities.Publication
	service     *activities.Service
)
