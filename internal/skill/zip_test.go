package skill_test

import (
	"archive/zip"
	"bytes"
	"io/fs"
	"strings"
	"testing"

	"pawgate/internal/skill"
)

type entry struct {
	name, content string
	mode          fs.FileMode
}

func archive(t *testing.T, entries ...entry) *bytes.Reader {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate}
		h.SetMode(e.mode | 0o644)
		f, err := w.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(e.content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return bytes.NewReader(b.Bytes())
}

func TestReadZip(t *testing.T) {
	t.Parallel()
	r := archive(t, entry{"pdf-forms/", "", fs.ModeDir}, entry{"pdf-forms/SKILL.md", good, 0}, entry{"pdf-forms/scripts/fill.py", "print()", 0o111})
	folder, files, ps := skill.ReadZip(r, r.Size())
	if len(ps) > 0 || folder != "pdf-forms" || len(files) != 2 {
		t.Fatalf("got %q, %d files, %v", folder, len(files), ps)
	}
	s, ps := skill.Parse(folder, files)
	if len(ps) > 0 || !s.Find("scripts/fill.py").Executable || s.Find("SKILL.md").Executable {
		t.Errorf("got %+v, %v", s, ps)
	}
	if broken := bytes.NewReader([]byte("no zip")); true {
		if _, _, ps := skill.ReadZip(broken, broken.Size()); !ps.Has(skill.ArchiveBroken) {
			t.Errorf("no archive: %v", ps)
		}
	}
}

func TestReadZip_refuses_the_whole_archive(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		entries []entry
		want    skill.Rule
	}{
		"CTS-05 parent":            {[]entry{{"../x", "x", 0}}, skill.PathUnsafe},
		"CTS-05 parent of folder":  {[]entry{{"a/../../x/", "", fs.ModeDir}}, skill.PathUnsafe},
		"CTS-05 drive":             {[]entry{{"C:/x", "x", 0}}, skill.PathUnsafe},
		"CTS-05 backslash":         {[]entry{{`a\..\b`, "x", 0}}, skill.PathUnsafe},
		"CTS-05 absolute":          {[]entry{{"/etc/cron.d/x", "x", 0}}, skill.PathUnsafe},
		"CTS-05 expands":           {[]entry{{"zeros", strings.Repeat("\x00", 64<<20), 0}}, skill.FileTooLarge},
		"CTS-05 one large file":    {[]entry{{"zeros", strings.Repeat("\x00", skill.MaxFile+1), 0}}, skill.FileTooLarge},
		"CTS-05 expands in pieces": {[]entry{{"a", strings.Repeat("\x00", skill.MaxFile), 0}, {"b", strings.Repeat("\x00", skill.MaxFile), 0}, {"c", strings.Repeat("\x00", skill.MaxFile), 0}, {"d", strings.Repeat("\x00", skill.MaxFile), 0}}, skill.TotalTooLarge},
		"CTS-06 link and file":     {[]entry{{"out", "/etc", fs.ModeSymlink}, {"out/cron.d", "x", 0}}, skill.NotAFile},
		"CTS-06 link":              {[]entry{{"notes.md", "/etc/passwd", fs.ModeSymlink}}, skill.NotAFile},
		"device":                   {[]entry{{"pipe", "", fs.ModeNamedPipe}}, skill.NotAFile},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := archive(t, append([]entry{{"SKILL.md", good, 0}}, tc.entries...)...)
			_, files, ps := skill.ReadZip(r, r.Size())
			if !ps.Has(tc.want) || files != nil {
				t.Errorf("got %d files and %v, want none and %s", len(files), ps, tc.want)
			}
		})
	}
}

func TestDiff(t *testing.T) {
	t.Parallel()
	before := []skill.File{{Path: "SKILL.md", Content: []byte("one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\n")}, {Path: "gone", Content: []byte("x\n")}, {Path: "same", Content: []byte("s")}, {Path: "run.sh"}}
	after := []skill.File{{Path: "SKILL.md", Content: []byte("one\n2\nthree\nfour\nfive\nsix\nseven\neight\n9\nten\n")}, {Path: "new.bin", Content: []byte{0}}, {Path: "same", Content: []byte("s")}, {Path: "run.sh", Executable: true}}
	got := skill.Diff(before, after)
	want := map[string]string{
		"SKILL.md": "changed  one\n-two\n+2\n three\n four\n@ 2 equal lines\n seven\n eight\n-nine\n+9\n ten\n",
		"gone":     "removed -x\n", "new.bin": "added ", "run.sh": "mode ",
	}
	if len(got) != len(want) {
		t.Errorf("got %+v", got)
	}
	for _, c := range got {
		if c.Kind+" "+c.Diff != want[c.Path] {
			t.Errorf("%s: got %q, want %q", c.Path, c.Kind+" "+c.Diff, want[c.Path])
		}
	}
	long := []skill.File{{Path: "a", Content: []byte(strings.Repeat("line\n", 9000))}}
	if c := skill.Diff(nil, long); !c[0].Truncated || len(c[0].Diff) > 9<<10 {
		t.Errorf("a long diff has %d bytes, truncated %v", len(c[0].Diff), c[0].Truncated)
	}
}
