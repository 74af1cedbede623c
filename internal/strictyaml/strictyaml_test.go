package strictyaml

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type color string

func (color) Values() []string { return []string{"red", "green"} }

type wait time.Duration

func (w *wait) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	*w = wait(d)
	return err
}

type inner struct {
	Name  string `json:"name"`
	Color color  `json:"color,omitempty"`
}

type target struct {
	Text    string            `json:"text"`
	Number  int               `json:"number"`
	Big     int64             `json:"big"`
	Yes     bool              `json:"yes"`
	List    []inner           `json:"list"`
	Pointer *inner            `json:"pointer"`
	Options map[string]string `json:"options"`
	Wait    wait              `json:"wait"`
	Hidden  string            `json:"-"`
}

func read(t *testing.T, text string, into any) []string {
	t.Helper()
	root, found := Parse([]byte(text))
	if root != nil {
		found = append(found, Decode(root, into)...)
	}
	var out []string
	for _, f := range found {
		out = append(out, fmt.Sprintf("%d:%d %s: %s; %s", f.Line, f.Column, f.Path, f.Problem, f.Remedy))
	}
	return out
}

func TestEveryShapeIsRead(t *testing.T) {
	t.Parallel()
	got := target{Number: 9, Text: "default"}
	require.Empty(t, read(t, `
text: |
  two
  lines
number: # left out
big: -9000000000
yes: true
list: [{name: a, color: red}, {name: "1"}]
pointer: {name: p}
options: {a: x, b: 1.50, c: true, "d.e":}
wait: 5s
`, &got))
	require.Equal(t, target{
		Text: "two\nlines\n", Number: 9, Big: -9_000_000_000, Yes: true,
		List: []inner{{Name: "a", Color: "red"}, {Name: "1"}}, Pointer: &inner{Name: "p"},
		Options: map[string]string{"a": "x", "b": "1.50", "c": "true", "d.e": ""}, Wait: wait(5 * time.Second),
	}, got)
}

func TestNothingIsConverted(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{
		`1:7 text: it is the number 1, want text; put it in quotes: "1"`,
		`2:9 number: it is the text "1", want a whole number; `,
		`3:6 big: it is the number 1.5, want a whole number; `,
		`4:6 yes: it is the text "yes", want a boolean; `,
		`5:7 list: it is the text "a", want a list; write [a]`,
		`6:10 pointer: it is a list, want a mapping; its keys are name, color`,
		`7:14 options.a: it is a list, want text; `,
		`8:7 wait: time: missing unit in duration "5"; `,
	}, read(t, `text: 1
number: "1"
big: 1.5
yes: yes
list: a
pointer: []
options: {a: [1]}
wait: 5
`, &target{}))
}

func TestNumbersAreDecimalAndInRange(t *testing.T) {
	t.Parallel()
	for _, number := range []string{"0x10", "0o17", "1_000", "99999999999999999999"} {
		require.Len(t, read(t, "number: "+number, &target{}), 1, number)
	}
}

func TestUnknownKeysAndValuesProposeTheNearest(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{
		`1:1 txet: unknown key "txet"; did you mean "text"?`,
		`2:1 zzz: unknown key "zzz"; known keys are text, number, big, yes, list, pointer, options, wait`,
		`3:1 Hidden: unknown key "Hidden"; known keys are text, number, big, yes, list, pointer, options, wait`,
		`4:16 list[0].color: unknown value "Red"; did you mean "red"? (one of red, green)`,
		`4:30 list[1].color: unknown value "mauve"; write one of red, green`,
	}, read(t, `txet: a
zzz: b
Hidden: c
list: [{color: Red}, {color: mauve}]
`, &target{}))
}

func TestDuplicateKeysAreReportedAndTheFirstWins(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"text: a\ntext: b\n", "{\"text\": \"a\",\n\"text\": \"b\"}"} {
		var got target
		require.Equal(t, []string{`2:1 text: key "text" is given twice; the first is in line 1`}, read(t, text, &got))
		require.Equal(t, "a", got.Text)
	}
}

func TestMergeKeysGiveWayToOwnKeys(t *testing.T) {
	t.Parallel()
	var got target
	require.Empty(t, read(t, "list:\n  - &a {name: x, color: red}\n  - &b {name: y, color: green}\n  - {<<: [*a, *b], color: green}\n", &got))
	require.Equal(t, inner{Name: "x", Color: "green"}, got.List[2])
	require.Equal(t, []string{"1:5 : << takes a mapping or a list of mappings; "}, read(t, "<<: text\n", &target{}))
}

func TestJSONHasItsTruePlaces(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{
		`3:12 number: it is the text "ü", want a whole number; `,
		`4:20 list[0].name: it is the boolean true, want text; put it in quotes: "true"`,
		`4:27 list[1].Ü: unknown key "Ü"; known keys are name, color`,
		`4:35 list[1].colour: unknown key "colour"; did you mean "color"?`,
	}, read(t, "{\n\t\"text\": \"\\ud83d\\ude00\\/\",\n\t\"number\": \"ü\",\n\t\"list\": [{\"name\": true},{\"Ü\": 1, \"colour\": 2}]\n}", &target{}))
}

func TestPositionsOfPaths(t *testing.T) {
	t.Parallel()
	root, faults := Parse([]byte("a:\n  - b: 1\n    c: {d: [x, y]}\n  - e:\n      f: 2\n"))
	require.Empty(t, faults)
	for path, want := range map[string][2]int{
		"": {1, 1}, "a": {1, 1}, "a[0]": {2, 5}, "a[0].b": {2, 8}, "a[0].c.d[1]": {3, 16}, "a[1].e": {4, 5}, "a[1].e.f": {5, 10},
		"a[1].e.missing": {4, 5}, "a[9].x": {1, 1}, "missing": {1, 1}, "a[x]": {1, 1},
	} {
		line, column := root.At(path)
		require.Equal(t, want, [2]int{line, column}, path)
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	known := []string{"depends_on", "findings", "id", "write"}
	for word, want := range map[string]string{"depnds_on": "depends_on", "finding": "findings", "ID": "id", "wirte": "write", "ix": "", "reader": "", "": "", strings.Repeat("x", 99): ""} {
		got, ok := Nearest(word, known)
		require.Equal(t, want, got, word)
		require.Equal(t, want != "", ok)
	}
}

func TestShortenCutsAtCharacters(t *testing.T) {
	t.Parallel()
	require.Equal(t, "äö…", Shorten("äöüß", 3))
	require.Equal(t, "äöü", Shorten("äöü", 3))
}

func TestAByteOrderMarkIsSkipped(t *testing.T) {
	t.Parallel()
	var got target
	require.Empty(t, read(t, "\ufefftext: a\n", &got))
	require.Equal(t, "a", got.Text)
}

func FuzzParse(f *testing.F) {
	f.Add("a: &a [1, {b: *a}]\n---\nc: |\n x\n")
	f.Add("{\"a\": [1e5, null, true]}")
	f.Add("? - a\n: <<: *b\n!!str 3: !x 4")
	f.Fuzz(func(t *testing.T, text string) {
		root, faults := Parse([]byte(text))
		if root == nil && len(faults) == 0 {
			t.Fatal("neither a value nor a fault")
		}
		for _, fault := range faults {
			if fault.Line < 1 || fault.Column < 1 {
				t.Fatalf("fault without a place: %+v", fault)
			}
		}
		Decode(root, &target{})
	})
}
