package dispatch

import "strings"

// Continuity: a node whose files lie near what the run changed already goes
// first, since a worker's context and the reader's review profit from it. The
// closeness of two folders is twice the number of leading parts that they share,
// one more when they are the same.

func (ix *frontierIndex) buildFolders(s *frontierState) {
	ix.closeness = make([]int, len(s.Units))
	ix.byFolder, ix.byPrefix = map[string][]int{}, map[string][]int{}
	ix.touched, ix.prefixes = map[string]bool{}, map[string]bool{}
	for i, u := range s.Units {
		for _, folder := range u.Files {
			folder = cleanFolder(folder)
			ix.byFolder[folder] = append(ix.byFolder[folder], i)
			for above := range foldersUpwards(folder) {
				if at := ix.byPrefix[above]; len(at) == 0 || at[len(at)-1] != i {
					ix.byPrefix[above] = append(at, i)
				}
			}
		}
	}
	for _, folder := range s.Touched {
		ix.touch(folder)
	}
}

// touch raises the closeness of every node near a changed folder. It reports
// false for a folder that was changed before.
func (ix *frontierIndex) touch(folder string) bool {
	if ix.touched[folder] {
		return false
	}
	ix.touched[folder] = true
	ix.raise(ix.byFolder[folder], 2*folderDepth(folder)+1)
	for above := range foldersUpwards(folder) {
		if ix.prefixes[above] {
			break // the folders above it were seen with it
		}
		ix.prefixes[above] = true
		ix.raise(ix.byPrefix[above], 2*folderDepth(above))
	}
	return true
}

func (ix *frontierIndex) raise(nodes []int, to int) {
	for _, n := range nodes {
		if ix.closeness[n] < to {
			ix.closeness[n] = to
			ix.unsorted = true
		}
	}
}

func folderDepth(folder string) int {
	if folder == "" {
		return 0
	}
	return strings.Count(folder, "/") + 1
}

// cleanFolder gives the root one name.
func cleanFolder(folder string) string {
	if folder == "." {
		return ""
	}
	return strings.TrimSuffix(folder, "/")
}

// folderOf returns the folder of a path, "" for the root.
func folderOf(path string) string { return path[:max(strings.LastIndexByte(path, '/'), 0)] }

// recordPaths remembers the folders that landed work changed.
func (f *Frontier) recordPaths(paths []string) {
	for _, path := range paths {
		if folder := folderOf(path); f.ix.touch(folder) {
			f.s.Touched = append(f.s.Touched, folder)
		}
	}
}
