package scenarios_test
import "testing"
func TestZZ(t *testing.T) { n:=0; f:=fills(20000,64,90,.025); for _,x:=range f { if x>=77 {n++} }; t.Log(n, f); lo,hi:=f.middle(.025); t.Log(lo,hi); lo,hi=fills(4000,64,90,0).middle(.025); t.Log(lo,hi) }
