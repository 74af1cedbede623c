package dispatch

// Forgotten says that the broker of an account is a new one that knows nothing
// of this drive: what waits there is asked for again at the next Decide, and its
// messages count from the first. Attempts that it had granted go on.
func (d *Drive) Forgotten(account string) {
	m := d.to(account)
	m.got = 0
	m.next.Reserve, m.next.Withdraw = nil, nil
	for _, n := range d.queue {
		kept := n.tickets[:0]
		for _, t := range n.tickets {
			if t.pool.def.Account == account {
				t.pool.took(t.spend, -1, 0)
				continue
			}
			kept = append(kept, t)
		}
		n.tickets = kept
	}
}
