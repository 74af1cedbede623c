package plan

import (
	_ "embed" // the schemas are files, so that editors can be pointed at them
	"slices"
)

//go:embed schema.json
var planSchema []byte

//go:embed pools.schema.json
var poolsSchema []byte

// Schema returns the JSON Schema (draft 2020-12) of plan files. It tells what a
// schema can: shapes, types, closed lists and ranges. What Parse accepts is valid
// under it; Parse checks more.
func Schema() []byte { return slices.Clone(planSchema) }

// PoolsSchema is the same for pools files.
func PoolsSchema() []byte { return slices.Clone(poolsSchema) }
