package startercmd

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"mendflow/internal/plan"
	"mendflow/internal/plan/importer"
)

// importOptions are the flags of `starter plan import`.
type importOptions struct {
	format, root, lens, id, goal, by, output string
	perNode                                  int
}

// imported is what `starter plan import --json` prints.
type imported struct {
	File     string          `json:"file"`
	Findings int             `json:"findings"`
	Nodes    int             `json:"nodes"`
	Folded   int             `json:"folded"`
	Unplaced []string        `json:"unplaced"` // nodes that ask for a scope
	Notes    []importer.Note `json:"notes"`
}

func (a *app) planImportCommand() *cobra.Command {
	var o importOptions
	cmd := &cobra.Command{
		Use:   "import FILE...",
		Short: "Make a plan of what scanners found: SARIF or a JSON list",
		Long: "Make a plan of what scanners found, to edit before it is started. SARIF 2.1.0 and plain JSON lists are read, - is\n" +
			"standard input. Findings that share files become one node; duplicates are folded; a path outside the repository is\n" +
			"refused, and a finding that names no place becomes a node that asks for its scope.",
		Example: "  golangci-lint run --output.sarif.path=lint.sarif\n  starter plan import lint.sarif -o plan.yaml\n  starter plan validate plan.yaml --repo .",
		Args:    cobra.MinimumNArgs(1),
		RunE:    func(_ *cobra.Command, args []string) error { return a.importPlan(args, o) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.format, "format", string(importer.Auto), "auto, sarif or json")
	flags.StringVar(&o.root, "root", "", "folder of the repository where the scanner ran (default: this one); absolute paths below it are understood")
	flags.StringVar(&o.lens, "lens", "", "lens of findings that name none")
	flags.StringVar(&o.id, "id", "", "id of the plan (default: made of the output's, else the first file's name)")
	flags.StringVar(&o.goal, "goal", "Repair what was found.", "goal of the plan")
	flags.StringVar(&o.by, "by", "file", "what makes findings one node: file, or folder, which lets a node write all files of the folder")
	flags.IntVar(&o.perNode, "per-node", 10, "most findings of a node")
	flags.StringVarP(&o.output, "output", "o", "", "write to this file (default: standard output)")
	return cmd
}

func (a *app) importPlan(files []string, o importOptions) error {
	if o.by != "file" && o.by != "folder" {
		return usage("import findings: want --by file or folder, not %q", o.by)
	}
	if o.lens != "" && !slices.Contains(plan.Lens("").Values(), o.lens) {
		return usage("import findings: unknown lens %q: want one of %s", o.lens, strings.Join(plan.Lens("").Values(), ", "))
	}
	if a.json && o.output == "" {
		return usage("import findings: --json tells about a file: give -o too")
	}
	root, err := filepath.Abs(o.root)
	if err != nil {
		return fmt.Errorf("find root: %w", err)
	}
	var raws []importer.Raw
	told := imported{File: o.output, Unplaced: []string{}, Notes: []importer.Note{}}
	for _, file := range files {
		data, err := a.readFindings(file)
		if err != nil {
			return usage("read findings: %w", err)
		}
		in, err := importer.Read(data, importer.Options{Format: importer.Format(o.format), Root: filepath.ToSlash(root), Lens: plan.Lens(o.lens)})
		if err != nil {
			return usage("%s: %w", file, err)
		}
		raws = append(raws, in.Findings...)
		for _, n := range in.Notes {
			n.Where = file + ": " + n.Where
			told.Notes = append(told.Notes, n)
		}
	}
	if len(raws) == 0 {
		a.sayNotes(told.Notes)
		return usage("import findings: there are none in %s", strings.Join(files, ", "))
	}
	id, err := importID(o, files)
	if err != nil {
		return err
	}
	built := importer.Build(id, o.goal, raws, importer.Grouping{Folder: o.by == "folder", PerNode: o.perNode})
	told.Findings, told.Nodes, told.Folded = len(built.Findings), len(built.Nodes), built.Folded
	told.Unplaced = append(told.Unplaced, built.Unplaced...)
	return a.sayImported(importer.Write(built), told)
}

// maxFindings bounds a file of findings, in bytes.
const maxFindings = 256 << 20

func (a *app) readFindings(file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(io.LimitReader(a.In, maxFindings))
	}
	info, err := os.Stat(file)
	if err == nil && info.Size() > maxFindings {
		return nil, fmt.Errorf("%s has %d MiB, at most %d are read", file, info.Size()>>20, maxFindings>>20)
	}
	return os.ReadFile(file)
}

// importID is the id of the new plan.
func importID(o importOptions, files []string) (string, error) {
	if o.id != "" {
		if err := plan.CheckPlanID(o.id); err != nil {
			return "", usage("read --id: %w", err)
		}
		return o.id, nil
	}
	for _, name := range append([]string{o.output}, files...) {
		base := filepath.Base(name)
		if id := plan.IDFromFile(strings.TrimSuffix(base, ".sarif")); name != "" && name != "-" && id != "" {
			return id, nil
		}
	}
	return "findings", nil
}

func (a *app) sayImported(text []byte, told imported) error {
	if told.File == "" {
		if _, err := a.Out.Write(text); err != nil {
			return err
		}
	} else if err := os.WriteFile(told.File, text, 0o644); err != nil {
		return fmt.Errorf("write plan: %w", err)
	}
	if a.json {
		return json.NewEncoder(a.Out).Encode(told)
	}
	a.sayNotes(told.Notes)
	w := plain{a.Err}
	fmt.Fprintf(w, "%d findings in %d nodes, %d duplicates folded\n", told.Findings, told.Nodes, told.Folded)
	if n := len(told.Unplaced); n > 0 {
		fmt.Fprintf(w, "%d nodes name no place and run alone until you give them a write scope: %s\n", n, strings.Join(told.Unplaced[:min(n, 10)], ", "))
	}
	if told.File != "" {
		fmt.Fprintf(w, "look at it, then: starter plan validate %s --repo .\n", told.File)
	}
	return nil
}

func (a *app) sayNotes(notes []importer.Note) {
	const most = 20
	for i, n := range notes {
		if i == most {
			fmt.Fprintf(a.Err, "… and %d more notes (--json lists all)\n", len(notes)-most)
			return
		}
		fmt.Fprintf(plain{a.Err}, "%s: %s\n", n.Where, n.Text)
	}
}
