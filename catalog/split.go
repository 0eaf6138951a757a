package catalog

import "strings"

// chunk is the text of one document and the line that it starts on, from 1.
type chunk struct {
	text string
	line int
}

// split takes a file of YAML documents apart at its separators, the lines that begin
// with three dashes. It is done by lines, ahead of any parser, so that a document
// that is broken does not hide the next, and so that each knows its line. What holds
// nothing but blanks and comments is no document.
func split(file string) []chunk {
	var chunks []chunk
	current := chunk{line: 1}
	flush := func() {
		if !blank(current.text) {
			chunks = append(chunks, current)
		}
	}
	line := 0
	for text := range strings.Lines(file) {
		line++
		rest, separates := strings.CutPrefix(text, "---")
		if !separates || strings.TrimLeft(rest, " \t\r\n") == rest && rest != "" {
			current.text += text
			continue
		}
		flush()
		current = chunk{line: line + 1}
		if content := strings.TrimSpace(rest); content != "" && !strings.HasPrefix(content, "#") {
			current = chunk{line: line, text: rest} // YAML lets a document begin here
		}
	}
	flush()
	return chunks
}

func blank(text string) bool {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			return false
		}
	}
	return true
}
