package gitrepo

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// A submodule is a gitlink of a commit with what .gitmodules says about it.
type submodule struct {
	Name string `json:"name"`
	Path string `json:"path"`
	OID  string `json:"oid"`
	URL  string `json:"url"`
}

// InitSubmodules checks the submodules of a fresh tree out, before any worker is in it, and returns
// those that it could not get (their folder stays empty). Objects come from the modules of a hub by
// path where they are there, so that nothing is downloaded twice; else from the submodule's URL.
func (w *Worktree) InitSubmodules(ctx context.Context) (missing []string, err error) {
	modules, err := w.mirror.submodules(ctx, w.rec.Base)
	if err != nil {
		return nil, fmt.Errorf("read submodules of %s: %w", w.rec.Tree, err)
	}
	for _, sm := range modules {
		if w.rec.Submodules[sm.Path] != "" {
			continue // since then a worker may have been in it
		}
		err := w.initSubmodule(ctx, sm)
		if ctx.Err() != nil {
			return missing, context.Cause(ctx)
		}
		if err != nil {
			w.mirror.store.settings.Log.Warn("could not check out a submodule", "path", sm.Path, "error", err)
			missing = append(missing, sm.Path)
			continue
		}
		if w.rec.Submodules == nil {
			w.rec.Submodules = map[string]string{}
		}
		w.rec.Submodules[sm.Path] = submoduleDigest(w.rec.Tree, sm.Path)
	}
	return missing, writeRecord(w.mirror.store.recordPath(w.slot), w.rec)
}

// submoduleDigest is over names, sizes and times of a submodule's files and over its HEAD. git itself
// never looks into a submodule after a worker ran: it is a nested repository.
func submoduleDigest(tree, path string) string {
	dir := filepath.Join(tree, filepath.FromSlash(path))
	sum := sha256.New()
	head, _ := os.ReadFile(filepath.Join(dir, ".git", "HEAD")) // absent is as good as changed
	fmt.Fprintf(sum, "%q\n", head)
	_ = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // what cannot be read differs from what was there
		}
		if d.Name() == ".git" {
			return fs.SkipDir
		}
		if info, err := d.Info(); err == nil && !d.IsDir() {
			fmt.Fprintf(sum, "%q %o %d %d\n", p[len(dir):], info.Mode(), info.Size(), info.ModTime().UnixNano())
		}
		return nil
	})
	return hex.EncodeToString(sum.Sum(nil))
}

// addSubmodules notes checked-out submodules in which something changed.
func (c *collector) addSubmodules() {
	for _, path := range sortedKeys(c.w.rec.Submodules) {
		if !slices.Contains(c.work.Gitlinks, path) && submoduleDigest(c.w.rec.Tree, path) != c.w.rec.Submodules[path] {
			c.work.Gitlinks = append(c.work.Gitlinks, path)
		}
	}
}

func (m *Mirror) submodules(ctx context.Context, commit string) ([]submodule, error) {
	text, err := m.ReadFile(ctx, commit, ".gitmodules")
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	res, err := m.run(ctx, command{args: []string{"config", "--file", "-", "-z", "--get-regexp", `^submodule\..*\.(path|url)$`},
		stdin: strings.NewReader(string(text)), ok: []int{1}})
	if err != nil {
		return nil, err
	}
	return m.gitlinks(ctx, commit, parseModules(res.stdout))
}

// parseModules reads the output of config --get-regexp for submodule.NAME.path and .url.
func parseModules(out []byte) map[string]*submodule {
	byName := map[string]*submodule{}
	for _, record := range splitNUL(out) {
		key, value, _ := strings.Cut(record, "\n")
		key, ours := strings.CutPrefix(key, "submodule.")
		dot := strings.LastIndexByte(key, '.')
		if !ours || dot < 0 {
			continue
		}
		name := key[:dot]
		if byName[name] == nil {
			byName[name] = &submodule{Name: name}
		}
		if key[dot+1:] == "path" {
			byName[name].Path = value
		} else {
			byName[name].URL = value
		}
	}
	return byName
}

func (m *Mirror) gitlinks(ctx context.Context, commit string, byName map[string]*submodule) ([]submodule, error) {
	var paths []string
	for _, sm := range byName {
		if filepath.IsLocal(sm.Path) && sm.Path != "." {
			paths = append(paths, sm.Path)
		}
	}
	if len(paths) == 0 {
		return nil, nil
	}
	entries, err := m.listTree(ctx, commit, paths...)
	if err != nil {
		return nil, err
	}
	var found []submodule
	for _, e := range entries {
		for _, name := range sortedKeys(byName) {
			if sm := byName[name]; sm.Path == e.Path && e.Kind == "commit" {
				sm.OID = e.OID
				found = append(found, *sm)
			}
		}
	}
	return found, nil
}

func (w *Worktree) initSubmodule(ctx context.Context, sm submodule) error {
	target := filepath.Join(w.rec.Tree, filepath.FromSlash(sm.Path))
	if _, err := os.Lstat(filepath.Join(target, ".git")); err == nil {
		return nil
	}
	reference := w.moduleStore(sm)
	source := w.submoduleURL(sm.URL)
	if reference != "" && w.moduleHas(ctx, reference, sm.OID) {
		source, reference = reference, ""
	} else if source == "" {
		return fmt.Errorf("clone submodule %s: no usable url", sm.Path)
	}
	if err := removeTree(target); err != nil {
		return err
	}
	for _, c := range submoduleCommands(source, reference, target, sm.OID) {
		c.options, c.network = w.mirror.options, true
		if _, err := w.mirror.store.git.run(ctx, c); err != nil {
			return errors.Join(err, removeTree(target), os.Mkdir(target, 0o777))
		}
	}
	return nil
}

func submoduleCommands(source, reference, target, oid string) []command {
	clone := []string{"clone", "--quiet", "--no-checkout", "--template="}
	if reference != "" {
		clone = append(clone, "--reference-if-able", reference, "--dissociate")
	}
	return []command{
		{args: append(clone, "--", source, target)},
		{args: []string{"checkout", "--quiet", "--force", "--detach", oid}, dir: target, gitDir: filepath.Join(target, ".git"),
			workTree: target},
	}
}

// moduleStore is where the user's checkout keeps the submodule's repository, empty when it has none.
func (w *Worktree) moduleStore(sm submodule) string {
	hub := w.mirror.hub
	if hub.GitDir == "" || !filepath.IsLocal(sm.Name) {
		return ""
	}
	dir := filepath.Join(hub.GitDir, "modules", filepath.FromSlash(sm.Name))
	if !isDir(filepath.Join(dir, "objects")) {
		return ""
	}
	return dir
}

func (w *Worktree) moduleHas(ctx context.Context, dir, oid string) bool {
	_, err := w.mirror.store.git.run(ctx, command{args: []string{"cat-file", "-e", oid + "^{commit}"}, dir: dir, gitDir: dir,
		env: []string{"GIT_WORK_TREE=" + dir}})
	return err == nil
}

// submoduleURL resolves a relative URL against the hub; it is empty for what could be an option.
func (w *Worktree) submoduleURL(raw string) string {
	hub := w.mirror.hub
	switch {
	case raw == "" || strings.HasPrefix(raw, "-"):
		return ""
	case !strings.HasPrefix(raw, "./") && !strings.HasPrefix(raw, "../"):
		return raw
	case hub.URL == "":
		return filepath.Join(hub.Canonical, raw)
	}
	if u, err := url.Parse(hub.URL); err == nil && u.Scheme != "" {
		u.Path = path.Join(u.Path, raw)
		return u.String()
	}
	host, rest, _ := strings.Cut(hub.URL, ":")
	return host + ":" + path.Join(rest, raw)
}
