package gate

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// pyproject is what discovery reads of a pyproject.toml.
type pyproject struct {
	Tool struct {
		Pytest map[string]any `toml:"pytest"`
		Mypy   map[string]any `toml:"mypy"`
		Ruff   map[string]any `toml:"ruff"`
	} `toml:"tool"`
}

var iniTargets = regexp.MustCompile(`(?m)^\s*(files|packages|modules)\s*=`)

// pythonFiles make a folder a Python project; a conftest.py belongs to the closest of them above it.
var pythonFiles = []string{
	"pyproject.toml", "setup.cfg", "setup.py", "pytest.ini", ".pytest.ini", "tox.ini", "mypy.ini", ".mypy.ini",
	"ruff.toml", ".ruff.toml", "requirements.txt", "Pipfile",
}

// python offers pytest, mypy and ruff where the project configures them.
func (s *scan) python() {
	dirs := s.dirsOf(pythonFiles...)
	conftests := map[string][]string{}
	for _, p := range s.named["conftest.py"] {
		owner := enclosing(path.Dir(p), dirs)
		if owner == "" {
			owner = path.Dir(p)
			dirs = append(dirs, owner)
		}
		conftests[owner] = append(conftests[owner], p)
	}
	for _, dir := range dirs {
		s.pythonProject(dir, conftests[dir])
	}
}

func (s *scan) pythonProject(dir string, conftests []string) {
	p := path.Join(dir, "pyproject.toml")
	var project pyproject
	if _, err := toml.Decode(string(s.read(p)), &project); err != nil {
		s.warn(p, err)
	}
	pytest := append(s.present(dir, "pytest.ini", ".pytest.ini"), s.section(dir, "[tool:pytest]", "setup.cfg")...)
	pytest = append(pytest, s.section(dir, "[pytest]", "tox.ini")...)
	mypy := append(s.present(dir, "mypy.ini", ".mypy.ini"), s.section(dir, "[mypy]", "setup.cfg")...)
	ruff := s.present(dir, "ruff.toml", ".ruff.toml")
	for _, tool := range []struct {
		table map[string]any
		files *[]string
	}{{project.Tool.Pytest, &pytest}, {project.Tool.Mypy, &mypy}, {project.Tool.Ruff, &ruff}} {
		if tool.table != nil {
			*tool.files = append(*tool.files, p)
		}
	}
	if len(pytest) == 0 {
		pytest = conftests
	}
	if len(pytest)+len(mypy)+len(ruff) == 0 {
		return
	}
	run := s.pythonRunner(dir)
	if len(mypy) > 0 {
		argv := append(slices.Clone(run), "mypy")
		if !s.mypyNamesTargets(mypy, project) {
			argv = append(argv, ".")
		}
		s.add(LayerCheck, dir, argv...)
	}
	if len(ruff) > 0 {
		s.add(LayerCheck, dir, append(slices.Clone(run), "ruff", "check", ".")...)
	}
	if len(pytest) > 0 {
		s.add(LayerTest, dir, append(slices.Clone(run), "pytest")...)
	} else {
		s.residual(dir, "no tests are configured for Python")
	}
	s.out.Sources = append(s.out.Sources, slices.Concat(pytest, mypy, ruff)...)
}

// section lists the file when it holds the section of an INI file.
func (s *scan) section(dir, header, name string) []string {
	for line := range strings.SplitSeq(string(s.read(path.Join(dir, name))), "\n") {
		if strings.TrimSpace(line) == header {
			return []string{path.Join(dir, name)}
		}
	}
	return nil
}

func (s *scan) present(dir string, names ...string) []string {
	var out []string
	for _, name := range names {
		if s.has(dir, name) {
			out = append(out, path.Join(dir, name))
		}
	}
	return out
}

// mypyNamesTargets reports whether the configuration says what to check; mypy without it and without arguments only fails.
func (s *scan) mypyNamesTargets(files []string, project pyproject) bool {
	for _, key := range []string{"files", "packages", "modules"} {
		if _, ok := project.Tool.Mypy[key]; ok {
			return true
		}
	}
	return slices.ContainsFunc(files, func(p string) bool {
		return path.Base(p) != "pyproject.toml" && iniTargets.Match(s.read(p))
	})
}

// pythonRunner starts a tool in the project's environment, whose lockfile says which manager made it.
func (s *scan) pythonRunner(dir string) []string {
	for d := dir; ; d = path.Dir(d) {
		switch s.first(d, "uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock") {
		case "uv.lock":
			return []string{"uv", "run"}
		case "poetry.lock":
			return []string{"poetry", "run"}
		case "pdm.lock":
			return []string{"pdm", "run"}
		case "Pipfile.lock":
			return []string{"pipenv", "run"}
		}
		if d == "." {
			return []string{"python3", "-m"}
		}
	}
}
