// Package strictyaml reads files that people write, YAML 1.2 or JSON, into Go
// values and reports everything that is wrong with them at once, with line,
// column and path.
//
// Unlike a plain decoder it refuses unknown keys (naming the nearest known one),
// duplicate keys, several documents and values of another type, and it converts
// nothing: text is text and a number is a number. Anchors, aliases and merge keys
// are resolved, within a bound on what they may expand to.
//
// Decode follows the json tags of the target, so that a type has one spelling in
// files and on the wire. Keys that a file leaves out keep the value that the
// target already has, which is how defaults are given. A key that is written
// without a value counts as left out.
//
// It knows nothing of what the values mean; rules are checked by the caller, who
// finds positions for its own faults with Node.At.
package strictyaml
