package gitrepo

import (
	"io/fs"
	"path"
)

// Bounds of what a salvage takes of one nested repository.
const (
	nestedFiles = 10_000
	nestedBytes = 64 << 20
)

// addNested notes a nested repository, which never lands. A salvage takes its files, without its .git
// and within bounds: they may be work.
func (c *collector) addNested(folder string) error {
	c.work.Nested = append(c.work.Nested, folder)
	if !c.asIs {
		return nil
	}
	var paths []string
	var bytes int64
	_ = fs.WalkDir(c.root.FS(), folder, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // what cannot be read cannot be kept
		}
		if path.Base(p) == ".git" || d.IsDir() && generatedFolder(d.Name()) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if info, err := d.Info(); err == nil && plainFile(info) {
			paths = append(paths, p)
			bytes += info.Size()
		}
		if len(paths) > nestedFiles || bytes > nestedBytes {
			paths = nil
			return fs.SkipAll
		}
		return nil
	})
	for _, p := range paths {
		if err := c.appendNew(p, true); err != nil {
			return err
		}
	}
	return nil
}
