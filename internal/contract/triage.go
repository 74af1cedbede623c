package contract

// ItemsQuery asks for rows of the findings from Offset, at most Limit of them.
type ItemsQuery struct {
	Offset int  `json:"offset"`
	Limit  int  `json:"limit"`
	Asked  bool `json:"asked,omitempty"` // only those that wait for an operator's answer
}

// Clarification is an operator's answer to a worker's question, for the next prompt.
type Clarification struct {
	Finding  string `json:"finding"`
	Question string `json:"question,omitempty"` // at most 500 bytes
	Answer   string `json:"answer"`             // at most 1000 bytes
}

// Answers for a blocked item.
const (
	TriageRetry  = "retry"
	TriageIgnore = "ignore"
	TriageHalt   = "halt"
)

// Answers to a worker's question.
const (
	AnswerClarified = "clarified"
	AnswerReject    = "reject"
	AnswerDefer     = "defer"
)

// EveryItem stands for all items that wait for an answer.
const EveryItem = "all"
