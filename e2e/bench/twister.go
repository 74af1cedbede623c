package main

import "math/big"

// twister is the generator MT19937 as Python's random module seeds and reads
// it, since the yardstick's repositories are defined by that.
type twister struct {
	state [624]uint32
	next  int
}

func newTwister(seed uint32) *twister {
	t := &twister{next: 624}
	s := &t.state
	s[0] = 19650218
	for i := 1; i < len(s); i++ {
		s[i] = 1812433253*(s[i-1]^s[i-1]>>30) + uint32(i)
	}
	// init_by_array with the one key `seed`
	i := 1
	advance := func() {
		if i++; i == len(s) {
			s[0], i = s[len(s)-1], 1
		}
	}
	for range s {
		s[i] = (s[i] ^ (s[i-1]^s[i-1]>>30)*1664525) + seed
		advance()
	}
	for range len(s) - 1 {
		s[i] = (s[i] ^ (s[i-1]^s[i-1]>>30)*1566083941) - uint32(i)
		advance()
	}
	s[0] = 1 << 31
	return t
}

func (t *twister) uint32() uint32 {
	if t.next == len(t.state) {
		t.generate()
	}
	y := t.state[t.next]
	t.next++
	y ^= y >> 11
	y ^= y << 7 & 0x9d2c5680
	y ^= y << 15 & 0xefc60000
	return y ^ y>>18
}

func (t *twister) generate() {
	const period = 397
	s, n := &t.state, len(t.state)
	for i := range s {
		y := s[i]&(1<<31) | s[(i+1)%n]&(1<<31-1)
		s[i] = s[(i+period)%n] ^ y>>1 ^ y&1*0x9908b0df
	}
	t.next = 0
}

// bits160 is Python's getrandbits(160): five words, the least significant first.
func (t *twister) bits160() *big.Int {
	v := new(big.Int)
	for i := range uint(5) {
		word := new(big.Int).SetUint64(uint64(t.uint32()))
		v.Or(v, word.Lsh(word, 32*i))
	}
	return v
}
