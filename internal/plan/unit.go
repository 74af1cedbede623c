package plan

// Unit is a node as a workflow carries it: what decides when it may run and how
// it is ordered, and nothing else. Keys are short, since a run of 2 000 nodes
// carries 2 000 of these through its history.
type Unit struct {
	ID           string   `json:"id"`
	Findings     []string `json:"f"`           // selected findings, in plan order
	DependsOn    []string `json:"d,omitempty"` // selected nodes, dropped ones bridged
	Write        []string `json:"w,omitempty"` // write scope; empty: exclusive
	Files        []string `json:"p,omitempty"` // folders of its files, for continuity; at most 16
	Phase        int      `json:"h,omitempty"`
	Depth        int      `json:"l"` // dependency level, from 0
	Tier         Tier     `json:"t"`
	Severity     int      `json:"s"`           // rank of its worst finding, 0 is critical
	Tokens       int      `json:"k,omitempty"` // estimate for its prompt and files
	SharedAppend bool     `json:"a,omitempty"`
}
