package quota

import (
	"bytes"
	"strings"
	"sync"
)

// plainText keeps the lines of plain text in which a provider may speak: those
// with a word of the vocabulary, their neighbours, and the end of the text.
// Everything else is passed over without being read.
type plainText struct {
	lines    []string
	strict   bool     // a model may have written the text
	diff     bool     // inside a diff
	fence    bool     // inside a code block of Markdown
	log      bool     // every line starts with a logger's timestamp
	seen     bool     // a first line with text was seen
	reported bool     // the logger gave the lines the level of an error
	pending  [][]byte // last lines without a word of the vocabulary
	after    int      // lines still to keep behind the last one with such a word
}

const (
	linesBefore = 2  // kept before a line with a word of the vocabulary
	linesAfter  = 10 // kept behind it
	linesAtEnd  = 20 // kept at the end of the text, whatever they say
	pieceSize   = 4 << 10
	// leftOut stands for lines that were passed over.
	leftOut = "\f"
)

// mark notes that something else stood between two lines.
func (p *plainText) mark() {
	p.flush(linesBefore)
	p.separate()
}

// separate ends the run of lines.
func (p *plainText) separate() {
	if n := len(p.lines); n > 0 && p.lines[n-1] != "" {
		p.lines = append(p.lines, "")
	}
}

// add takes up one line. A very long one is taken in pieces, cut at blanks.
func (p *plainText) add(raw []byte) {
	for len(raw) > pieceSize {
		cut := bytes.LastIndexByte(raw[:pieceSize], ' ')
		if cut <= 0 {
			cut = pieceSize
		}
		p.addPiece(raw[:cut])
		raw = raw[cut:]
	}
	p.addPiece(raw)
}

func (p *plainText) addPiece(raw []byte) {
	if p.block(raw) {
		p.mark()
		return
	}
	if !p.seen {
		if len(bytes.TrimSpace(raw)) == 0 {
			return
		}
		p.seen = true
		p.log = logPrefix(clean(string(raw[:min(len(raw), 200)]))) > 0
	}
	switch {
	case triggers(raw):
		p.flush(linesBefore)
		p.keep(raw)
		p.after = linesAfter
	case p.after > 0:
		p.after--
		p.keep(raw)
	default:
		if len(p.pending) == 2*linesAtEnd {
			p.flushed(linesAtEnd)
		}
		p.pending = append(p.pending, raw)
	}
}

// flushed drops all but the last n pending lines.
func (p *plainText) flushed(n int) {
	if len(p.pending) <= n {
		return
	}
	p.pending = append(p.pending[:0], p.pending[len(p.pending)-n:]...)
	if k := len(p.lines); k == 0 || p.lines[k-1] != leftOut {
		p.lines = append(p.lines, leftOut)
	}
}

// flush keeps the last n pending lines.
func (p *plainText) flush(n int) {
	p.flushed(n)
	for _, raw := range p.pending {
		p.keep(raw)
	}
	p.pending = p.pending[:0]
}

func (p *plainText) keep(raw []byte) {
	for line := range strings.SplitSeq(clean(string(raw)), "\n") {
		p.addLine(strings.TrimRight(line, " \t"))
	}
}

// finish gives the runs of lines of the whole text.
func (p *plainText) finish() []passage {
	p.flush(linesAtEnd)
	return p.passages()
}

// block follows diffs and code blocks; it is true for their lines.
func (p *plainText) block(raw []byte) bool {
	body := bytes.TrimLeft(raw, " \t")
	if bytes.HasPrefix(body, []byte("```")) || bytes.HasPrefix(body, []byte("~~~")) {
		p.fence = !p.fence
		return true
	}
	if p.fence {
		return true
	}
	for _, start := range diffStarts {
		if bytes.HasPrefix(raw, start) {
			p.diff = true
			return true
		}
	}
	if p.diff {
		p.diff = len(raw) > 0 && bytes.IndexByte([]byte("+- \\"), raw[0]) >= 0 || bytes.HasPrefix(raw, []byte("index "))
	}
	return p.diff
}

var diffStarts = [][]byte{[]byte("diff --git "), []byte("@@ "), []byte("--- a/"), []byte("+++ b/"), []byte("--- /dev/null"), []byte("+++ "), []byte("Index: ")}

// triggers tells whether a line may hold a phrase of the vocabulary: it has
// four letters that one of its words starts with, a number such as 429, a sign of
// a script without blanks, or an escape that may cut a word.
func triggers(line []byte) bool {
	grams := vocabularyGrams()
	var gram uint32
	for i, c := range line {
		if c >= 0xe3 || c == 0x1b {
			return true
		}
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		gram = gram<<8 | uint32(c)
		if h := hashGram(gram); grams.bits[h>>6]&(1<<(h&63)) != 0 && grams.exact[gram] {
			return true
		}
		if (c == '4' || c == '5') && i+2 < len(line) && digit(line[i+1]) && digit(line[i+2]) &&
			(i == 0 || !digit(line[i-1])) && (i+3 >= len(line) || !digit(line[i+3])) {
			return true
		}
	}
	return false
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

// gramSet is a set of four letters, with a filter before it.
type gramSet struct {
	bits  [1 << 10]uint64
	exact map[uint32]bool
}

func hashGram(g uint32) uint32 { return g * 2654435761 >> 16 }

// gramOf gives the first four letters of a word.
func gramOf(w string) (uint32, bool) {
	if len(w) < 4 || w[0] >= 0x80 {
		return 0, false
	}
	return uint32(w[0])<<24 | uint32(w[1])<<16 | uint32(w[2])<<8 | uint32(w[3]), true
}

var vocabularyGrams = sync.OnceValue(func() *gramSet {
	g := &gramSet{exact: make(map[uint32]bool)}
	add := func(gram uint32) {
		g.exact[gram] = true
		h := hashGram(gram)
		g.bits[h>>6] |= 1 << (h & 63)
	}
	for _, shortWord := range []string{" key", "-key", "_key", "ikey"} {
		gram, _ := gramOf(shortWord)
		add(gram)
	}
	for _, l := range []*lexicon{refusals, anchors, retryLine} {
		names := make([]string, len(l.index().first))
		for w, id := range l.index().words {
			names[id] = w
		}
		for _, p := range l.index().phrases {
			if p.sense == ownLimit || p.sense == warning {
				continue // they only take back what others say
			}
			for _, s := range p.steps {
				for _, id := range s.want {
					if gram, ok := gramOf(names[id]); ok && !everyday[names[id]] {
						add(gram)
					}
				}
			}
		}
	}
	return g
})

// everyday are words of the vocabulary that are too common to look for; no
// phrase of refusals consists of them alone.
var everyday = set("been", "from", "have", "will", "with", "your", "this", "that", "over", "more", "when", "body", "packet", "company", "team", "file", "files", "line", "lines",
	"time", "process", "input", "content", "back", "after", "until", "come", "selected",
	"near", "close", "about", "fast", "output", "column", "depth", "step", "steps", "size", "loop", "character", "code", "user", "user's")
