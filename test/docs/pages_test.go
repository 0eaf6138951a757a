package docs

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// root is the repository, seen from this package.
const root = "../.."

// page is a Markdown file.
type page struct {
	path   string // from the root
	prose  []line // what is outside of fenced blocks
	blocks []block
}

type line struct {
	number int
	text   string
}

// block is a fenced block.
type block struct {
	page, language string
	number         int // of its first line of text
	text           string
}

func (b *block) String() string { return fmt.Sprintf("%s:%d", b.page, b.number) }

// readPages reads all pages.
func readPages(t *testing.T) []*page {
	t.Helper()
	paths := []string{"README.md", "CONTRIBUTING.md"}
	err := fs.WalkDir(os.DirFS(root), "docs", func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".md" {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var pages []*page
	for _, path := range paths {
		pages = append(pages, parsePage(t, path, readFile(t, path)))
	}
	return pages
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// fence opens or closes a block, also one that is indented below the item of a list.
var fence = regexp.MustCompile("^( *)```(.*)$")

func parsePage(t *testing.T, path, text string) *page {
	t.Helper()
	p := &page{path: path}
	var open *block
	var indent string
	var body []string
	for i, l := range strings.Split(text, "\n") {
		m := fence.FindStringSubmatch(l)
		switch {
		case m != nil && open == nil:
			if m[2] == "" {
				t.Errorf("%s:%d: a fenced block without a language", path, i+1)
			}
			open, indent, body = &block{page: path, language: m[2], number: i + 2}, m[1], nil
		case m != nil:
			open.text = strings.Join(body, "\n") + "\n"
			p.blocks = append(p.blocks, *open)
			open = nil
		case open != nil:
			body = append(body, strings.TrimPrefix(l, indent))
		default:
			p.prose = append(p.prose, line{i + 1, l})
		}
	}
	if open != nil {
		t.Errorf("%s:%d: a fenced block that does not end", path, open.number)
	}
	return p
}

// blocksOf returns the blocks of a language, and fails where there are none: a test
// that finds nothing to test has been misspelt.
func blocksOf(t *testing.T, pages []*page, language string) []block {
	t.Helper()
	var found []block
	for _, p := range pages {
		for _, b := range p.blocks {
			if b.language == language {
				found = append(found, b)
			}
		}
	}
	if len(found) == 0 {
		t.Fatalf("no block of language %s on any page", language)
	}
	return found
}

// text is the prose of a page with its blocks.
func (p *page) text() string {
	var s strings.Builder
	for _, l := range p.prose {
		s.WriteString(l.text + "\n")
	}
	for _, b := range p.blocks {
		s.WriteString(b.text)
	}
	return s.String()
}

var (
	heading  = regexp.MustCompile(`^#{1,6} +(.+?) *$`)
	linked   = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	unslug   = regexp.MustCompile(`[^\p{L}\p{N}\p{M}_ -]`)
	codeSpan = regexp.MustCompile("`[^`]*`")
)

// anchors are the fragments that the page's headings can be linked by, as GitHub
// makes them.
func (p *page) anchors() map[string]bool {
	found := map[string]bool{}
	for _, l := range p.prose {
		m := heading.FindStringSubmatch(l.text)
		if m == nil {
			continue
		}
		slug := strings.ToLower(linked.ReplaceAllString(m[1], "$1"))
		slug = strings.ReplaceAll(unslug.ReplaceAllString(slug, ""), " ", "-")
		unique := slug
		for i := 1; found[unique]; i++ {
			unique = fmt.Sprintf("%s-%d", slug, i)
		}
		found[unique] = true
	}
	return found
}
