package process_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"mendflow/internal/process"
)

// toolchains are builds and tests of real tool chains, without the network.
var toolchains = map[string]struct {
	files map[string]string
	shell string
}{
	"go": {
		files: map[string]string{
			"go.mod":    "module example.com/m\n\ngo 1.24\n",
			"m.go":      "package m\n\nfunc Add(a, b int) int { return a + b }\n",
			"m_test.go": "package m\n\nimport \"testing\"\n\nfunc TestAdd(t *testing.T) {\n\tif Add(1, 2) != 3 {\n\t\tt.Fatal()\n\t}\n}\n",
		},
		shell: "go build ./... && go vet ./... && go test ./...",
	},
	"cargo": {
		files: map[string]string{
			"Cargo.toml": "[package]\nname = \"m\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
			"src/lib.rs": "pub fn add(a: i32, b: i32) -> i32 { a + b }\n#[test]\nfn adds() { assert_eq!(add(1, 2), 3); }\n",
		},
		shell: "cargo test --offline --quiet",
	},
	"npm": {
		files: map[string]string{
			"package.json":     `{"name":"m","version":"1.0.0","scripts":{"test":"node test.js"},"dependencies":{"dep":"file:./dep"}}`,
			"dep/package.json": `{"name":"dep","version":"1.0.0","main":"index.js"}`,
			"dep/index.js":     "module.exports = 3\n",
			"test.js":          "if (require('dep') !== 3) process.exit(1)\n",
		},
		shell: "npm install --offline --no-audit --no-fund && npm test",
	},
	"python3": {
		files: map[string]string{
			"m.py":      "def add(a, b):\n    return a + b\n",
			"test_m.py": "import unittest, m\n\nclass T(unittest.TestCase):\n    def test_add(self):\n        self.assertEqual(m.add(1, 2), 3)\n",
		},
		shell: "python3 -m venv --without-pip venv && venv/bin/python -m unittest -q && python3 -m compileall -q m.py && python3 -m pip --version",
	},
	"pip": {
		files: map[string]string{
			"pyproject.toml": "[build-system]\nrequires = []\nbuild-backend = \"backend\"\nbackend-path = [\".\"]\n",
			"m/__init__.py":  "def add(a, b):\n    return a + b\n",
			// A backend of the project's own: those of others come from the network.
			"backend.py": `import zipfile
def build_wheel(folder, config_settings=None, metadata_directory=None):
    info = "m-1.0.dist-info/"
    with zipfile.ZipFile(folder + "/m-1.0-py3-none-any.whl", "w") as wheel:
        wheel.write("m/__init__.py")
        wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\nName: m\nVersion: 1.0\n")
        wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(info + "RECORD", "")
    return "m-1.0-py3-none-any.whl"
`,
		},
		shell: "python3 -m venv venv && venv/bin/python -m pip install -q --no-index . && cd m && ../venv/bin/python -c 'import m; assert m.add(1, 2) == 3'",
	},
}

// toolHome is a home that survives the test, as a host's does: the second build
// on a host is not the first one.
func toolHome(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	home := filepath.Join(cache, "mendflow-test", "home")
	require.NoError(t, os.MkdirAll(home, 0o700))
	return home
}

func TestToolChainsWorkInsideTheSandbox(t *testing.T) {
	t.Parallel()
	requireSandbox(t)
	hostHome, err := os.UserHomeDir()
	require.NoError(t, err)
	for name, chain := range toolchains {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(name); err != nil {
				t.Skipf("%s is not installed", name)
			}
			spec := base(t)
			for file, text := range chain.files {
				path := filepath.Join(spec.Dir, file)
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
				require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
			}
			home, temp := toolHome(t), t.TempDir()
			env, err := process.Environment{Host: os.Environ(), HostHome: hostHome, Home: home, Temp: temp}.Build()
			require.NoError(t, err)
			spec.Env = env
			spec.Sandbox = &process.Sandbox{Writable: []string{spec.Dir, home, temp}}
			spec.Shell = chain.shell
			r, err := process.Run(t.Context(), spec)
			require.NoError(t, err)
			require.True(t, r.Succeeded(), "%s\n%s\n%s", r, r.StdoutTail, r.StderrTail)
			require.Empty(t, r.Left)
		})
	}
}
