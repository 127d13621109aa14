package vllmv1_test

import (
	"fmt"

	"llmsim/sim/vllmv1"
)

// ones always emits token 1.
type ones struct{}

func (ones) Sample(string, int) vllmv1.Token { return 1 }

// Two equal prompts in one step: the second hits the two blocks that the first has filled.
func Example() {
	profile, err := vllmv1.FindProfile(vllmv1.DefaultProfile)
	if err != nil {
		fmt.Println(err)
		return
	}
	scheduler, err := vllmv1.New(vllmv1.Config{
		MaxNumSeqs: 256, MaxNumBatchedTokens: 8192, MaxModelLen: 1000, Policy: vllmv1.FCFS,
		EnableChunkedPrefill: true, EnablePrefixCaching: true, SchedulerReserveFullISL: true,
		NumGPUBlocks: 11, BlockSize: 16,
	}, profile.Rules)
	if err != nil {
		fmt.Println(err)
		return
	}
	engine := vllmv1.NewEngine(scheduler, ones{})
	for _, id := range []string{"a", "b"} {
		if err := engine.Add(vllmv1.Request{ID: id, Prompt: make([]vllmv1.Token, 40), MaxTokens: 2}); err != nil {
			fmt.Println(err)
			return
		}
	}
	for !engine.Idle() {
		turn := engine.Iterate()
		for _, s := range turn.Decision.Scheduled {
			fmt.Printf("step %d: %s computes %d on %d\n", turn.Decision.Step, s.ID, s.NumTokens, s.NumComputedTokens)
		}
		for _, f := range turn.Outcome.Finished {
			fmt.Printf("%s ends (%s), %d of %d blocks free\n", f.ID, f.Reason, engine.Free(), engine.Usable())
		}
	}
	// Output:
	// step 1: a computes 40 on 0
	// step 1: b computes 8 on 32
	// step 2: a computes 1 on 40
	// step 2: b computes 1 on 40
	// a ends (length), 10 of 10 blocks free
	// b ends (length), 10 of 10 blocks free
}
