// Package plan answers planning questions by running scenarios.
//
// It knows runs and verdicts. It knows nothing of how a scenario is written, or an answer shown.
package plan

import (
	"slices"
	"strings"

	"llmsim/report"
	"llmsim/scenarios"
)

// Version is the program's, as every output carries it.
const Version = "0.1.0"

// Identify says which run its results are of. The notes are those of the scenario's source.
func Identify(s *scenarios.Scenario, notes []string) (report.Identity, error) {
	digest, err := s.Digest()
	if err != nil {
		return report.Identity{}, err
	}
	if s.Mixed() {
		return identifyPools(s, digest, notes), nil
	}
	blocks, _ := s.KVBlocks()
	id := report.Identity{
		Version: Version, Scenario: s.Name, Digest: digest, Seed: s.Seed,
		Policy: s.Engine.Policy, Models: s.Engine.Models,
		Defaults: s.Engine.Defaults,
		Blocks:   blocks, BlockSize: s.Engine.BlockSize,
		Workload: s.Workload.String(),
	}
	if ideal(s) {
		id.Assumptions = append(id.Assumptions, idealNote)
	}
	id.Assumptions = append(id.Assumptions, notes...)
	return id, nil
}

const idealNote = "steps run at the full roofline (efficiency 1): real engines need 20-60% longer"

// ideal reports whether steps reach all of the hardware.
func ideal(s *scenarios.Scenario) bool {
	e := s.Cost.Efficiency
	return s.Cost.Model == "roofline" && e.Compute == 1 && e.Memory == 1
}

// identifyPools says which run it is of a fleet of pools, and what these are.
func identifyPools(s *scenarios.Scenario, digest string, notes []string) report.Identity {
	id := report.Identity{Version: Version, Scenario: s.Name, Digest: digest, Seed: s.Seed, Workload: s.Workload.String()}
	var policies, models, full []string
	pools := s.Pools()
	for i, p := range pools {
		blocks, _ := p.KVBlocks()
		named := s.Fleet.Pools[i]
		id.Pools = append(id.Pools, report.PoolIdentity{
			Name: named.Name, Model: p.Model.Name, Hardware: p.Hardware.Name,
			Policy: p.Engine.Policy, Models: p.Engine.Models, Defaults: p.Engine.Defaults,
			Replicas: p.Fleet.Replicas, GPUs: p.Fleet.Replicas * p.Engine.GPUs(),
			Accepts: [2]int{named.PromptTokens.Lo, named.PromptTokens.Hi},
			Blocks:  blocks, BlockSize: p.Engine.BlockSize,
		})
		if !slices.Contains(policies, p.Engine.Policy) {
			policies = append(policies, p.Engine.Policy)
		}
		if !slices.Contains(models, p.Engine.Models) {
			models = append(models, p.Engine.Models)
		}
		if ideal(p) {
			full = append(full, named.Name)
		}
	}
	id.Policy, id.Models = strings.Join(policies, ", "), strings.Join(models, ", ")
	switch {
	case len(full) == len(pools):
		id.Assumptions = append(id.Assumptions, idealNote)
	case len(full) > 0:
		id.Assumptions = append(id.Assumptions, "pool "+strings.Join(full, ", ")+": "+idealNote)
	}
	for _, p := range id.Pools {
		if len(p.Defaults) > 0 {
			id.Assumptions = append(id.Assumptions, "pool "+p.Name+": defaults of its engine: "+strings.Join(p.Defaults, ", "))
		}
	}
	id.Assumptions = append(id.Assumptions, notes...)
	return id
}
