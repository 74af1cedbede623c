package redact

// rule is a credential that is known by its look: a literal prefix and what
// must follow it.
type rule struct {
	prefix string
	// keep is the number of bytes of the prefix that stay readable.
	keep int
	kind kind
	// class holds the bytes that may follow; min is how many of them make it a
	// credential. What follows in the same class is masked too.
	class *class
	min   int
	// digit asks for at least one digit, which random text has and prose has not.
	digit bool
	// boundary asks that the prefix is not the end of a longer word.
	boundary bool
}

type kind uint8

const (
	kindRun      kind = iota // bytes of one class
	kindJWT                  // three dotted parts
	kindPEM                  // up to the END line
	kindUserInfo             // user:password@ after ://
)

const (
	// maxHold bounds how much of a candidate is held back before it is decided.
	maxHold = 1024
	// maxPEM bounds what a private key without its END line can swallow.
	maxPEM = 16 << 10
)

type class [256]bool

func newClass(ranges ...string) *class {
	var c class
	for _, r := range ranges {
		if len(r) == 3 && r[1] == '-' {
			for b := int(r[0]); b <= int(r[2]); b++ {
				c[b] = true
			}
			continue
		}
		for i := range len(r) {
			c[r[i]] = true
		}
	}
	return &c
}

var (
	upperDigit = newClass("A-Z", "0-9")
	alnum      = newClass("a-z", "A-Z", "0-9")
	word       = newClass("a-z", "A-Z", "0-9", "_")
	wordDash   = newClass("a-z", "A-Z", "0-9", "_", "-")
	dotted     = newClass("a-z", "A-Z", "0-9", "_", "-", ".")
	token68    = newClass("a-z", "A-Z", "0-9", "._~+/=", "-") // RFC 7235, section 2.1
	pemBody    = newClass("a-z", "A-Z", "0-9", "+/=", "\r\n\\ :,", "-")
	userInfo   = newClass("a-z", "A-Z", "0-9", "._~%!$&'()*+,;=:[]", "-") // RFC 3986, section 3.2.1, and our own mark
)

// knownRules lists the credentials that are masked wherever they stand. The
// forms are the vendors' documented ones; the minimum lengths are below the
// real ones, since a credential that was cut is still worth hiding.
func knownRules() []rule {
	rules := []rule{
		{prefix: "sk-", class: wordDash, min: 20, digit: true, boundary: true}, // OpenAI and the many that copy it
		{prefix: "AKIA", class: upperDigit, min: 16, digit: true},              // AWS access key
		{prefix: "ASIA", class: upperDigit, min: 16, digit: true},              // AWS temporary access key
		{prefix: "AIza", class: wordDash, min: 30, digit: true},                // Google API key
		{prefix: "ya29.", class: dotted, min: 20, digit: true},                 // Google OAuth
		{prefix: "SG.", class: dotted, min: 40, digit: true, boundary: true},   // SendGrid
		{prefix: "github_pat_", class: word, min: 20},
		{prefix: "glpat-", class: wordDash, min: 18},
		{prefix: "AGE-SECRET-KEY-1", class: upperDigit, min: 40},
		{prefix: "eyJ", kind: kindJWT, class: wordDash, min: 8},
		{prefix: "://", kind: kindUserInfo, keep: 3, class: userInfo},
	}
	for _, p := range []string{"sk-ant-", "sk-proj-", "sk-or-", "sk-svcacct-", "sk_live_", "sk_test_", "rk_live_"} {
		rules = append(rules, rule{prefix: p, class: wordDash, min: 16, digit: true})
	}
	for _, p := range []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_"} {
		rules = append(rules, rule{prefix: p, class: word, min: 20, digit: true})
	}
	for _, p := range []string{"xoxa-", "xoxb-", "xoxe-", "xoxo-", "xoxp-", "xoxr-", "xoxs-", "xapp-"} { // Slack
		rules = append(rules, rule{prefix: p, class: wordDash, min: 10, digit: true})
	}
	for _, p := range []string{"npm_", "hf_", "gsk_", "r8_", "xai-", "nvapi-", "pplx-", "dop_v1_", "pypi-AgE"} {
		rules = append(rules, rule{prefix: p, class: wordDash, min: 30, digit: true, boundary: true})
	}
	for _, p := range []string{"Bearer ", "bearer ", "BEARER "} {
		rules = append(rules, rule{prefix: p, keep: len(p), class: token68, min: 16, digit: true})
	}
	for _, p := range []string{"uthorization: Basic ", "uthorization: basic ", "x-api-key: ", "X-Api-Key: ", "x-goog-api-key: "} {
		rules = append(rules, rule{prefix: p, keep: len(p), class: token68, min: 8})
	}
	for _, p := range []string{"", "RSA ", "EC ", "DSA ", "OPENSSH ", "ENCRYPTED "} {
		rules = append(rules, rule{prefix: "-----BEGIN " + p + "PRIVATE KEY-----", kind: kindPEM, class: pemBody})
	}
	return append(rules, rule{prefix: "-----BEGIN PGP PRIVATE KEY BLOCK-----", kind: kindPEM, class: pemBody})
}
