package hub

import (
	"encoding/json"
	"log/slog"
	"os"
	"path"
)

// sources is the folder, within the target, of the records of where files came
// from.
const sources = ".sources"

// Origin is where a file on this host came from.
type Origin struct {
	Repo     string `json:"repo"`
	Revision string `json:"revision"` // a commit
	File     string `json:"file"`
	SHA256   string `json:"sha256"`
}

// remember notes the origin of a file. Not being able to is no reason to lose
// the file.
func (s Source) remember(root *os.Root) {
	b, err := json.Marshal(Origin{Repo: s.Repo, Revision: s.Revision, File: s.Path, SHA256: s.SHA256})
	if err == nil {
		if err = root.MkdirAll(sources, 0o755); err == nil {
			err = root.WriteFile(path.Join(sources, s.Name()+".json"), b, 0o644)
		}
	}
	if err != nil {
		slog.Warn("note the origin of a model", "file", s.Name(), "error", err)
	}
}

// OriginOf is where a file came from; ok is false when nobody noted it.
func OriginOf(root *os.Root, file string) (o Origin, ok bool) {
	b, err := root.ReadFile(path.Join(sources, path.Base(file)+".json"))
	if err != nil || json.Unmarshal(b, &o) != nil {
		return Origin{}, false
	}
	return o, true
}
