package vllmv1
import ("testing";"fmt")
func TestZZ(t *testing.T){
 bad:=map[string]int{}
 for seed := range uint64(3000) {
 w := randomWorkload(seed)
 s,_ := New(w.Config,w.Rules)
 e := NewEngine(s,w)
 for _,q := range w.requests { e.Add(q) }
 turn:=0
 for ; !e.Idle() && turn<5000; turn++ { e.Iterate() }
 if !e.Idle() {
   k:=fmt.Sprint(w.Policy," async ",w.AsyncScheduling," rules ",w.Rules," reserve ",w.SchedulerReserveFullISL, " chunk ",w.EnableChunkedPrefill)
   bad[k]++
   if bad[k]==1 { fmt.Println(seed,k,fmt.Sprintf("%+v",w.Config)); for i:=0;i<6;i++ { it:=e.Iterate(); d:=it.Decision; if d!=nil {for _,x:=range d.Scheduled {fmt.Print(x.ID,":",x.NumTokens,"@",x.NumComputedTokens," ",x.Origin," ")}; fmt.Print(" P",d.Preempted," R",d.Running," W",d.Waiting," S",d.Skipped,d.Free); if it.Outcome!=nil {fmt.Print(" -> ",it.Outcome.Outputs)}; fmt.Println()}}}
 }}
 fmt.Println(bad)
}
