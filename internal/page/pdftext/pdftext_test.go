package pdftext

import (
	"bytes"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestRead/SSRF-21: text of a PDF, not its bytes. simple, cjk and cols were
// written by reportlab, fpdf by fpdf2: fonts of one byte, predefined CMaps,
// transformed paragraphs, composite fonts with a ToUnicode map.
func TestRead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		file, title string
		want        []string
	}{
		{"simple.pdf", "Annual report", []string{"Annual report 2026\nRevenue grew by 12 percent to 4.2 million.\nCosts fell (slightly).", "Second page: outlook"}},
		{"cjk.pdf", "untitled", []string{"国家统计局今天公布\n備份設定說明\n東京都は本日\n서울시는 오늘"}},
		{"fpdf.pdf", "", []string{"Größe naïve “quoted” Привет мир. This paragraph is long enough to be broken over\n" +
			"several lines by the library that wrote the file, with kerning or without it.\n\nSecond paragraph after a gap."}},
	} {
		t.Run("SSRF-21 "+c.file, func(t *testing.T) {
			t.Parallel()
			got, err := Read(t.Context(), readFile(t, c.file))
			if err != nil || got.Unread != 0 || got.Title != c.title {
				t.Fatalf("got %+v, %v", got, err)
			}
			if diff := cmp.Diff(c.want, got.Pages); diff != "" {
				t.Errorf("pages (-want +got):\n%s", diff)
			}
		})
	}
	got, err := Read(t.Context(), readFile(t, "cols.pdf"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Two columns\n\nParagraph number 0. The quick", "detail.\nParagraph number 11.", "Item Price\nApple 1.20\nPear 2.40"} {
		if !strings.Contains(strings.Join(got.Pages, "\n"), want) {
			t.Errorf("columns: no %q in\n%s", want, got.Pages[0])
		}
	}
}

func TestReadForgives(t *testing.T) {
	t.Parallel()
	simple := readFile(t, "simple.pdf")
	for name, body := range map[string][]byte{
		"junk after the end":   append(bytes.Clone(simple), bytes.Repeat([]byte("\n<!-- served by proxy -->"), 20)...),
		"a version 2.0 header": append([]byte("%PDF-2.0"), simple[8:]...),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Read(t.Context(), body)
			if err != nil || len(got.Pages) != 2 {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	simple := readFile(t, "simple.pdf")
	for name, c := range map[string]struct {
		body []byte
		want error
	}{
		"encrypted":           {readFile(t, "enc.pdf"), ErrEncrypted},
		"empty":               {nil, ErrDamaged},
		"HTML in disguise":    {[]byte("<html>404</html>"), ErrDamaged},
		"cut":                 {simple[:len(simple)-300], ErrDamaged},
		"a table without end": {bytes.Replace(simple, []byte("/Size "), []byte("/Size 99999999999"), 1), ErrDamaged},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := Read(t.Context(), c.body); !errors.Is(err, c.want) {
				t.Errorf("error %v, want %v", err, c.want)
			}
		})
	}
}

// file is a PDF of one page with the given content stream and page entries.
func file(content, filter, page string) []byte {
	var b bytes.Buffer
	var offsets []int
	b.WriteString("%PDF-1.4\n")
	for i, object := range []string{
		"<< /Type /Catalog /Pages 2 0 R >>",
		"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
		"<< /Type /Page /Parent 2 0 R /Contents 4 0 R /Resources << /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >> >> " + page + " >> >>",
		fmt.Sprintf("<< /Length %d %s >>\nstream\n%s\nendstream", len(content), filter, content),
	} {
		offsets = append(offsets, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, object)
	}
	start := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(offsets)+1)
	for _, o := range offsets {
		fmt.Fprintf(&b, "%010d 00000 n \n", o)
	}
	fmt.Fprintf(&b, "trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(offsets)+1, start)
	return b.Bytes()
}

func TestWalker(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ content, want string }{
		"kerning and spaces":           {"BT /F1 10 Tf 50 700 Td [(W) 80 (or) -20 (d) -300 (two)] TJ ET", "Word two"},
		"next line operators":          {"BT /F1 10 Tf 12 TL 50 700 Td (one) Tj T* (two) Tj (three) ' ET", "one\ntwo\nthree"},
		"words placed one by one":      {"BT /F1 10 Tf 1 0 0 1 50 700 Tm (Hello) Tj 1 0 0 1 80 700 Tm (world) Tj ET", "Hello world"},
		"letters placed one by one":    {"BT /F1 10 Tf 1 0 0 1 50 700 Tm (a) Tj 1 0 0 1 55 700 Tm (b) Tj ET", "ab"},
		"invisible text":               {"BT /F1 10 Tf 50 700 Td (seen) Tj 3 Tr (CTS-07 hidden) Tj ET", "seen"},
		"paragraphs by transformation": {"q 1 0 0 1 50 700 cm BT /F1 10 Tf (first) Tj ET Q q 1 0 0 1 50 680 cm BT /F1 10 Tf (second) Tj ET Q", "first\n\nsecond"},
		"unbalanced Q":                 {"Q Q BT /F1 10 Tf (x) Tj ET Q", "x"},
		"unknown font":                 {"BT /F9 10 Tf (raw) Tj ET", "raw"},
		"missing operands":             {"Tf Td Tm Tj TJ ' BT /F1 10 Tf (x) Tj ET", "x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Read(t.Context(), file(c.content, "", ""))
			if err != nil || len(got.Pages) != 1 || got.Pages[0] != c.want {
				t.Errorf("got %+v, %v, want %q", got, err, c.want)
			}
		})
	}
}

// TestBombs: hostile files end soon, in little memory.
func TestBombs(t *testing.T) {
	t.Parallel()
	deflate := func(s string, n int) string {
		var b bytes.Buffer
		w := zlib.NewWriter(&b)
		chunk := []byte(strings.Repeat(s, (1<<20)/len(s)))
		for range n {
			_, _ = w.Write(chunk)
		}
		_ = w.Close()
		return b.String()
	}
	for name, body := range map[string][]byte{
		"spaces":                   file(deflate(" ", 100), "/Filter /FlateDecode", ""),
		"open arrays":              file(deflate("[", 4), "/Filter /FlateDecode", ""),
		"a form that draws itself": file("/X Do", "", "/XObject << /X 4 0 R >>"),
		"much text":                file(deflate("BT /F1 1 Tf (aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa) Tj ET\n", 10), "/Filter /FlateDecode", ""),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			got, err := Read(ctx, body)
			if errors.Is(err, context.DeadlineExceeded) {
				t.Fatal("not finished in time")
			}
			for _, p := range got.Pages {
				if len(p) > maxText+1024 {
					t.Errorf("a page of %d bytes", len(p))
				}
			}
		})
	}
}

func FuzzRead(f *testing.F) {
	for _, name := range []string{"simple.pdf", "cjk.pdf"} {
		b, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add(file("BT /F1 10 Tf (x) Tj ET", "", ""))
	f.Fuzz(func(t *testing.T, body []byte) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if _, err := Read(ctx, body); errors.Is(err, context.DeadlineExceeded) {
			t.Error("not finished in time")
		}
	})
}
