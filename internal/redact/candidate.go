package redact

// candidate is a rule whose prefix was found and that waits for the rest.
type candidate struct {
	rule  *rule
	from  int64 // first byte to mask
	last  int64 // last byte that belongs to it
	count int   // bytes read, of the current part for dotted tokens
	digit bool
	live  bool // decided: what was read is masked, and so is what follows
	part  int  // dots of a token, groups of five dashes of a key, colon of a URL
	dash  int  // dashes in a row
}

// open is the first position that is not decided yet.
func (c *candidate) open() int64 {
	if c.live {
		return c.last + 1
	}
	return c.from
}

// advance takes the next byte; false ends the candidate.
func (c *candidate) advance(b byte, pos int64, found []span) ([]span, bool) {
	switch c.rule.kind {
	case kindJWT:
		return c.token(b, pos, found)
	case kindPEM:
		return c.key(b, pos, found)
	case kindUserInfo:
		return c.password(b, pos, found)
	default:
		return c.run(b, pos, found)
	}
}

// take counts a byte in and marks it when the candidate is live.
func (c *candidate) take(pos int64, found []span) []span {
	if c.live {
		found = mark(found, c.last+1, pos+1)
	}
	c.last = pos
	c.count++
	return found
}

// decide turns the candidate live and marks all of it.
func (c *candidate) decide(found []span) []span {
	c.live = true
	return mark(found, c.from, c.last+1)
}

func (c *candidate) run(b byte, pos int64, found []span) ([]span, bool) {
	if !c.rule.class[b] {
		return found, false
	}
	found = c.take(pos, found)
	c.digit = c.digit || b >= '0' && b <= '9'
	if !c.live && c.count >= c.rule.min && (c.digit || !c.rule.digit) {
		found = c.decide(found)
	}
	return found, c.live || c.count <= maxHold
}

// token follows header.payload.signature; two dots in are proof enough.
func (c *candidate) token(b byte, pos int64, found []span) ([]span, bool) {
	switch {
	case c.rule.class[b]:
		found = c.take(pos, found)
	case b == '.' && c.count >= c.rule.min && c.part < 2:
		found = c.take(pos, found)
		c.part++
		c.count = 0
	default:
		return found, false
	}
	if !c.live && c.part >= 1 && c.count >= c.rule.min {
		found = c.decide(found)
	}
	return found, c.live || c.count <= maxHold
}

// key swallows the body of a private key up to and with its END line.
func (c *candidate) key(b byte, pos int64, found []span) ([]span, bool) {
	if !c.rule.class[b] || c.count > maxPEM {
		return found, false
	}
	found = c.take(pos, found)
	if b != '-' {
		c.dash = 0
		return found, true
	}
	if c.dash++; c.dash == 5 {
		c.part++
	}
	return found, c.part < 2
}

// password waits for the @ that makes what stands before it a login.
func (c *candidate) password(b byte, pos int64, found []span) ([]span, bool) {
	switch {
	case b == '@':
		if c.part > 0 && c.last >= c.from { // there is a password
			found = mark(found, c.from, c.last+1)
		}
		return found, false
	case b == ':' && c.part == 0:
		c.part = 1
		c.from, c.last, c.count = pos+1, pos, 0
		return found, true
	}
	if !c.rule.class[b] || c.count > maxHold {
		return found, false
	}
	return c.take(pos, found), true
}
