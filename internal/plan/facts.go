package plan

import "slices"

// Facts are what a caller found in the repository about a plan. It looks up the
// paths that NamedPaths lists, at the base commit.
type Facts struct {
	Base               string           `json:"base,omitempty"`      // commit, for texts
	Sizes              map[string]int64 `json:"sizes,omitempty"`     // bytes of each named file that exists at the base
	Folders            []string         `json:"folders,omitempty"`   // named paths that are folders at the base
	Untracked          []string         `json:"untracked,omitempty"` // named paths that exist only untracked in the user's checkout
	IncludeUncommitted bool             `json:"include_uncommitted,omitempty"`
	FoldCase           bool             `json:"fold_case,omitempty"` // core.ignorecase
	Gate               []Command        `json:"gate,omitempty"`      // what discovery found; asked only when the plan names no gate
}

func (f *Facts) exists(path string) bool {
	_, file := sizeOf(f.Sizes, path)
	return file || f.folder(path) || f.IncludeUncommitted && f.untracked(path)
}

func (f *Facts) folder(path string) bool { return containsPath(f.Folders, path) }

func (f *Facts) untracked(path string) bool { return containsPath(f.Untracked, path) }

func containsPath(paths []string, path string) bool {
	return slices.ContainsFunc(spellings(path), func(s string) bool { return slices.Contains(paths, s) })
}

// sizeOf looks a path up in each of its normal forms.
func sizeOf(sizes map[string]int64, path string) (int64, bool) {
	for _, s := range spellings(path) {
		if size, ok := sizes[s]; ok {
			return size, true
		}
	}
	return 0, false
}

// missingFiles returns the finding's files that do not exist; none without facts.
// Files that come in with the uncommitted state exist.
func (f *Facts) missingFiles(finding *Finding) []string {
	if f == nil {
		return nil
	}
	var missing []string
	for _, file := range finding.Files {
		if !f.exists(file.Path) {
			missing = append(missing, file.Path)
		}
	}
	return missing
}
