package store

import (
	"crypto/sha256"
	"sync"

	"pawgate/internal/skill"
	"pawgate/internal/skill/scan"
)

// judged remembers verdicts of this process. A verdict follows from the bytes
// and the rules alone, so what is remembered by their hash never grows old; it
// spares a skill that is read again and again a scan each time.
var judged = struct {
	sync.Mutex
	verdicts map[[sha256.Size]byte]scan.Verdict
}{verdicts: map[[sha256.Size]byte]scan.Verdict{}}

// mostJudged bounds it; then it begins anew.
const mostJudged = 256

// judge is the verdict on files that have this digest.
func judge(digest [sha256.Size]byte, files []skill.File) scan.Verdict {
	judged.Lock()
	v, ok := judged.verdicts[digest]
	judged.Unlock()
	if ok {
		return v
	}
	v = scan.Files(files)
	judged.Lock()
	defer judged.Unlock()
	if len(judged.verdicts) >= mostJudged {
		clear(judged.verdicts)
	}
	judged.verdicts[digest] = v
	return v
}
