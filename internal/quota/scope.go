package quota

import "strings"

// families are names of model families that programs use for their windows.
var families = set("opus", "sonnet", "haiku")

// vendors are first words of model ids.
var vendors = set("gpt", "chatgpt", "claude", "gemini", "gemma", "llama", "qwen", "glm", "deepseek",
	"mistral", "mixtral", "codestral", "kimi", "grok", "minimax", "phi", "command", "nova", "meta",
	"moonshot", "davinci", "models", "o", "yi", "ernie", "hunyuan", "doubao")

// notModels are first words of ids that are no models.
var notModels = set("org", "organization", "proj", "project", "req", "request", "tier", "user", "team", "acct", "account", "installation", "per")

func familyIn(words []string) bool {
	for i, w := range words {
		if families[w] || w == "model" && i > 0 && words[i-1] == "per" {
			return true
		}
	}
	return false
}

var modelMentions = newLexicon([]group{
	{noModel, "mention", `
		this|selected|requested|chosen|given model
		the model is|was|has
		this|selected|the ~1 model's
		per model`},
})

// namesModel tells whether a text says that its limits are those of one model.
func (p *parser) namesModel(limits []hit) bool {
	if len(modelMentions.find(p.toks)) > 0 {
		return true
	}
	for _, l := range limits {
		for i := max(l.from-6, 0); i < min(l.to+2, len(p.toks)); i++ {
			if t := p.toks[i]; t.kind == word && families[t.text] {
				return true
			}
		}
	}
	for i, t := range p.toks {
		if (i == 0 || p.toks[i-1].stop) && (vendors[t.text] || p.tok(i+1).is("/")) && p.modelID(i) {
			return true
		}
		switch t.text {
		case "for", "on", "of", "model":
			if t.kind == word && p.modelID(i+1) {
				return true
			}
		}
	}
	return false
}

// modelID tells whether a model id such as gpt-4o or meta/llama-4 starts at
// token i, perhaps in quotes.
func (p *parser) modelID(i int) bool {
	for p.tok(i).is("`") || p.tok(i).is(`"`) || p.tok(i).is("'") || p.tok(i).is(":") || p.tok(i).is("model") {
		i++
	}
	first := p.tok(i)
	if first.kind != word || notModels[first.text] {
		return false
	}
	digits, joined, known := false, false, vendors[first.text]
	for j := i + 1; j < len(p.toks) && j < i+16 && !p.toks[j].space; j++ {
		t := p.toks[j]
		if t.kind == punct && !strings.ContainsAny(t.text, "-/._:@") {
			break
		}
		digits = digits || t.kind == num
		joined = joined || t.is("-") || t.is("/")
		known = known || p.toks[j-1].is("/") && vendors[t.text]
	}
	return joined && (digits || known) || digits && known
}
