package redact

// automaton finds the literals of all forms in one pass, without regard to
// ASCII case (Aho and Corasick, 1975, with the failures worked into the table).
// A state is its row's offset in the table.
type automaton struct {
	class   [256]uint8 // column of a byte; 0 for those in no literal
	next    []uint32   // rows × columns: the next state, with the accepting bit
	found   [][]hit    // by state/columns: the literals that end here
	columns uint32
	longest int // bytes of the longest literal
}

// accepting marks a state in which some literal ends.
const accepting = 1 << 31

// hit is one literal of one form.
type hit struct{ form, length int }

func lower(b byte) byte {
	if 'A' <= b && b <= 'Z' {
		return b + 'a' - 'A'
	}
	return b
}

func newAutomaton(forms []form) automaton {
	a := automaton{columns: 1}
	states := 1
	for _, f := range forms {
		for _, literal := range f.hints {
			a.longest = max(a.longest, len(literal))
			states += len(literal)
			for i := range len(literal) {
				if b := lower(literal[i]); a.class[b] == 0 {
					a.class[b] = uint8(a.columns)
					a.columns++
				}
			}
		}
	}
	for b := byte('A'); b <= 'Z'; b++ {
		a.class[b] = a.class[lower(b)]
	}
	a.next = make([]uint32, 0, states*int(a.columns))
	a.found = make([][]hit, 0, states)
	a.addState()
	for i, f := range forms {
		for _, literal := range f.hints {
			a.add(literal, hit{i, len(literal)})
		}
	}
	a.link()
	return a
}

func (a *automaton) addState() uint32 {
	state := uint32(len(a.next))
	a.next = a.next[:len(a.next)+int(a.columns)] // zero, and within what newAutomaton made
	a.found = append(a.found, nil)
	return state
}

// add lays out a literal as a branch of the tree; 0 is "no branch" until link.
func (a *automaton) add(literal string, h hit) {
	state := uint32(0)
	for i := range len(literal) {
		at := state + uint32(a.class[literal[i]])
		if a.next[at] == 0 {
			branch := a.addState()
			a.next[at] = branch
		}
		state = a.next[at]
	}
	row := state / a.columns
	a.found[row] = append(a.found[row], h)
}

// link fills in, breadth first, where to go on when a literal breaks off.
func (a *automaton) link() {
	fail := make([]uint32, len(a.found))
	queue := make([]uint32, 0, len(a.found))
	for c := range a.columns {
		if branch := a.next[c]; branch != 0 {
			queue = append(queue, branch)
		}
	}
	for i := 0; i < len(queue); i++ {
		state := queue[i]
		behind := fail[state/a.columns]
		if shorter := a.found[behind/a.columns]; len(shorter) > 0 {
			a.found[state/a.columns] = append(a.found[state/a.columns], shorter...)
		}
		for c := range a.columns {
			branch := a.next[state+c]
			if branch == 0 {
				a.next[state+c] = a.next[behind+c]
				continue
			}
			fail[branch/a.columns] = a.next[behind+c]
			queue = append(queue, branch)
		}
	}
	for i, state := range a.next {
		if a.found[state/a.columns] != nil {
			a.next[i] |= accepting
		}
	}
}

// search is where the first literal ends, or the second dot of a pair that a
// Discord token could have; -1 when there is neither.
func search[T string | []byte](a *automaton, s T) int {
	state := uint32(0)
	next, class := a.next, &a.class
	for i := range len(s) {
		b := s[i]
		state = next[state+uint32(class[b])]
		if state&accepting != 0 || b == '.' && i >= dotsApart && s[i-dotsApart] == '.' {
			return i
		}
	}
	return -1
}
