package gitrepo

import (
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
	"unicode/utf8"

	"bytes"
)

// generatedFolders hold what tools produce; nothing in them is source, whatever it looks like.
var generatedFolders = map[string]bool{
	"node_modules": true, "__pycache__": true, ".pytest_cache": true, ".mypy_cache": true, ".ruff_cache": true, ".tox": true,
	".venv": true, "venv": true, ".gradle": true, ".next": true, ".nuxt": true, ".turbo": true, ".parcel-cache": true,
	".cache": true, ".nyc_output": true, ".terraform": true, ".idea": true, ".vscode": true, ".vs": true, ".claude": true,
	".codex": true, ".aider.tags.cache.v4": true, "tmp": true, "temp": true, ".tmp": true, "coverage": true,
	"bower_components": true, ".svelte-kit": true, ".dart_tool": true, ".serverless": true, ".eggs": true,
}

func generatedFolder(name string) bool { return generatedFolders[strings.ToLower(name)] }

// scratchSuffixes are the names of logs, temporary and compiled files.
var scratchSuffixes = []string{
	".log", ".tmp", ".temp", ".bak", ".orig", ".rej", ".swp", ".swo", "~", ".pyc", ".pyo", ".o", ".obj", ".a", ".so", ".dylib",
	".dll", ".exe", ".class", ".jar", ".war", ".test", ".prof", ".out", ".pid", ".lock.tmp", ".coverprofile", ".tsbuildinfo",
	".egg-info", ".min.js.map", ".core", ".dmp", ".sqlite-journal", ".cache",
}

var scratchNames = map[string]bool{
	".ds_store": true, "thumbs.db": true, "desktop.ini": true, "nohup.out": true, "core": true, ".coverage": true,
	"npm-debug.log": true, "a.out": true, ".eslintcache": true,
}

// scratch says that a new file is a log, a temporary or a generated one by its name. Only files
// outside a node's scope, or hidden by an ignore rule, are judged by it.
func scratch(p string) bool {
	dir, name := path.Split(strings.ToLower(p))
	for elem := range strings.SplitSeq(strings.Trim(dir, "/"), "/") {
		if generatedFolders[elem] {
			return true
		}
	}
	if scratchNames[name] || secret(name) {
		return true
	}
	for _, suffix := range scratchSuffixes {
		if strings.HasSuffix(name, suffix) {
			return true
		}
	}
	return false
}

// secret says that a lower-case file name is that of a key or an environment file: never committed
// unless the scope names it.
func secret(name string) bool {
	if strings.HasPrefix(name, ".env") && !strings.HasSuffix(name, ".example") && !strings.HasSuffix(name, ".sample") &&
		!strings.HasSuffix(name, ".template") {
		return true
	}
	switch path.Ext(name) {
	case ".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx":
		return true
	}
	return strings.HasPrefix(name, "id_rsa") || strings.HasPrefix(name, "id_ed25519") || strings.HasPrefix(name, "id_ecdsa") ||
		name == ".netrc" || name == ".npmrc" || name == ".pypirc" || name == ".git-credentials"
}

// sourceLimit is the size above which an ignored file is not taken for source.
const sourceLimit = 1 << 20

// looksLikeSource: a text file of moderate size.
func (c *collector) looksLikeSource(p string) bool {
	info, err := c.root.Lstat(p)
	if err != nil || !info.Mode().IsRegular() || info.Size() > sourceLimit {
		return false
	}
	head, err := readHead(c.root, p, binaryWindow)
	if err != nil || bytes.IndexByte(head, 0) >= 0 {
		return false
	}
	for len(head) > 0 && !utf8.RuneStart(head[len(head)-1]) {
		head = head[:len(head)-1]
	}
	return utf8.Valid(head) || len(head) > 0 && utf8.Valid(head[:len(head)-1])
}

// readHead reads the first n bytes of a regular file; a pipe put in its place does not hold us.
func readHead(root *os.Root, p string, n int64) ([]byte, error) {
	f, err := root.OpenFile(p, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, fs.ErrNotExist
	}
	return io.ReadAll(io.LimitReader(f, n))
}
