// Package gitrepo is the only package that says git.
//
// A run works on three kinds of place. The hub is the repository that the user
// named, by path or by URL: it holds the truth (refs/mendflow/run/<run>) and one
// fence per node, and nothing of it but those refs, the branch that follows the
// truth, and objects is ever written. A mirror is this host's bare cache of a hub.
// Worktrees hang off the mirror, one per attempt.
//
// The package offers the steps of an attempt (worktree, collect, commit, merge,
// land, salvage, release) as functions that look at git first and do only what is
// missing, so that each can be repeated after a crash at any point. What landed is
// decided by the truth and its trailers, never by a record.
//
// After a worker ran in a tree, git never discovers anything there: GIT_DIR and
// GIT_WORK_TREE come from our own record, the index is our own copy, nested
// repositories are never entered. Every command runs with a fixed environment, at
// most GOMAXPROCS commands at once.
//
// Refs and admin files are read and written directly only where their format is
// fixed by gitrepository-layout(5): loose refs, packed-refs, loose objects, and the
// folder worktrees/<id>. Everything else is a git command.
//
// The package holds no rules of the product: which paths a node may change comes in
// as a function, what to do after a conflict or a lost race is the caller's. It
// starts no agent and no verification command.
package gitrepo
