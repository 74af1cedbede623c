package activities

import (
	"encoding/json"

	"mendflow/internal/contract"
)

// Bounds of what a result carries; everything is in an artifact as well.
const (
	itemBytes = 24 << 10 // answers of one attempt, as JSON
	shownRefs = 200      // refs of a closed run
)

// boundItems cuts the longest texts of an attempt's answers, step by step, until
// all of them fit into a payload.
func boundItems(items []contract.ItemResult) []contract.ItemResult {
	for limit := 500; ; limit /= 2 {
		data, err := json.Marshal(items)
		if err != nil || len(data) <= itemBytes || limit == 0 {
			return items
		}
		cut := make([]contract.ItemResult, len(items))
		for i, item := range items {
			item.Reason, item.Question = clip(item.Reason, max(limit, len("…"))), clip(item.Question, max(limit, len("…")))
			cut[i] = item
		}
		items = cut
	}
}
