package page

import (
	"strings"
	"testing"

	"golang.org/x/net/html/charset"
)

func encode(t *testing.T, name, text string) []byte {
	t.Helper()
	e, _ := charset.Lookup(name)
	b, err := e.NewEncoder().String(text)
	if err != nil {
		t.Fatal(err)
	}
	return []byte(b)
}

// TestDecode/SSRF-18: the declaration is found wherever it is, and one that
// the bytes contradict is passed over (complaint 82).
func TestDecode(t *testing.T) {
	t.Parallel()
	ja, zhTW, zhCN, ko := "これは日本語の文章です。", "這是繁體中文的網頁。", "这是简体中文的网页。", "이것은 한국어 문서입니다."
	meta := func(name, text string) string {
		return `<html><head><meta charset="` + name + `"><title>x</title></head><body>` + text + `</body></html>`
	}
	pragma := func(name, text string) string {
		return "<html>\n<head>" + strings.Repeat("<link rel=preload href=/long/path>\n", 60) +
			`<META HTTP-EQUIV="Content-Type" CONTENT="text/html; charset=` + name + `"></head><body>` + text + `</body></html>`
	}
	for _, c := range []struct{ name, encoding, contentType, body, want string }{
		{"SSRF-18 Shift_JIS by meta", "shift_jis", "text/html", meta("Shift_JIS", ja), ja},
		{"SSRF-18 Big5 by meta", "big5", "text/html", meta("big5", zhTW), zhTW},
		{"SSRF-18 GBK by meta", "gbk", "text/html", meta("gb2312", zhCN), zhCN},
		{"SSRF-18 EUC-KR by meta", "euc-kr", "text/html", meta("euc-kr", ko), ko},
		{"SSRF-18 EUC-JP by a late pragma", "euc-jp", "text/html", pragma("EUC-JP", ja), ja},
		{"Shift_JIS by header", "shift_jis", "text/html; charset=Shift_JIS", ja, ja},
		{"header before meta", "big5", "text/html;charset=Big5", meta("utf-8", zhTW), zhTW},
		{"header with a broken parameter", "gbk", `text/html; charset="GBK"; x`, zhCN, zhCN},
		{"header lies, meta is right", "gbk", "text/html; charset=utf-8", meta("gbk", strings.Repeat(zhCN, 9)), zhCN},
		{"server's default header over UTF-8", "utf-8", "text/html; charset=ISO-8859-1", meta("utf-8", zhTW), zhTW},
		{"meta says UTF-16 in an ASCII-readable page", "utf-8", "text/html", meta("utf-16", ko), ko},
		{"UTF-16 with mark", "utf-16le", "text/html; charset=utf-8", "\ufeff" + ja, ja},
		{"UTF-8 with mark under a wrong header", "utf-8", "text/html; charset=big5", "\ufeff" + ja, ja},
		{"windows-1252 as Latin-1", "windows-1252", "text/html; charset=iso-8859-1", "“it’s” 5 €", "“it’s” 5 €"},
		{"windows-1251 by meta", "windows-1251", "text/html", meta("windows-1251", "Съешь ещё"), "Съешь ещё"},
		{"windows-1258 by header", "windows-1258", "text/plain; charset=windows-1258", "chúng tôi", "chúng tôi"},
		{"XML declaration", "iso-8859-2", "application/xml", `<?xml version="1.0" encoding="iso-8859-2"?><a>Žluťoučký</a>`, "Žluťoučký"},
		{"GB18030 characters under GBK", "gb18030", "text/html; charset=gbk", "𠮷野家", "𠮷野家"},
		{"unknown charset", "utf-8", "text/html; charset=martian", ja, ja},
		{"ISO-2022-JP undeclared", "iso-2022-jp", "text/html", ja, ja},
		{"empty", "utf-8", "text/html", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			text, name := Decode(encode(t, c.encoding, c.body), c.contentType)
			if !strings.Contains(text, c.want) || strings.ContainsRune(text, '\ufffd') {
				t.Errorf("read as %s: %q", name, text)
			}
		})
	}
}

// TestDecodeKeepsOut: what Postgres and JSON cannot hold does not get through
// (MCP-17, MCP-18), and a body that was cut ends at a whole character.
func TestDecodeKeepsOut(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ body, contentType, want string }{
		"MCP-17 NUL":                 {"a\x00b", "text/plain", "ab"},
		"MCP-18 surrogate as UTF-8":  {"a\xed\xa0\xbdb é", "text/plain; charset=utf-8", "a\ufffdb é"},
		"MCP-18 surrogate as UTF-16": {"\xff\xfea\x00\x3d\xd8b\x00", "text/plain", "a\ufffdb"},
		"cut in a character":         {"日本\xe8\xaa", "text/plain", "日本"},
		"cut in Big5":                {string(encode(t, "big5", "繁體中"))[:5], "text/plain; charset=big5", "繁體"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, _ := Decode([]byte(c.body), c.contentType); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
