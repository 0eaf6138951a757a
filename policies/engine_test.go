package policies

import "testing"

func TestScratch(t *testing.T) {
	e := NewEngine()
	if err := e.Load(t.Context(), Shipped(), DefaultConfig()); err != nil {
		t.Fatal(err)
	}
}
