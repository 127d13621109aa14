package plan

import (
	"llmsim/report"
	"llmsim/scenarios"
)

// A Price is that of whole replicas, in US$.
type Price struct {
	PerGPUHour       float64 `json:"per_gpu_hour"`
	PerHour          float64 `json:"per_hour"`                  // of all replicas
	PerMillionOutput float64 `json:"per_million_output_tokens"` // at the rate that is served
	PerThousand      float64 `json:"per_1000_requests"`
	Source           string  `json:"source"`
}

// pricedFleet is what a scenario's fleet of so many replicas costs; of several pools, of each its own.
func pricedFleet(s *scenarios.Scenario, gpus int, served report.Throughput) *Price {
	if !s.Mixed() {
		return priced(s.Hardware.Price, s.Hardware.PriceSource, gpus, served.Completed, served.Output)
	}
	perHour, all := 0.0, 0
	for _, pool := range s.Pools() {
		if pool.Hardware.Price == 0 {
			return nil
		}
		n := pool.Fleet.Replicas * pool.Engine.GPUs()
		perHour += float64(pool.Hardware.Price * float64(n))
		all += n
	}
	return priced(perHour/float64(all), "on average over the pools", all, served.Completed, served.Output)
}

// priced is what some GPUs cost while so many requests and output tokens a second are served; nil
// where the price of a GPU is not known.
func priced(perGPU float64, source string, gpus int, requests, tokens float64) *Price {
	if perGPU == 0 {
		return nil
	}
	p := &Price{PerGPUHour: perGPU, PerHour: millionths(perGPU * float64(gpus)), Source: source}
	if requests > 0 {
		p.PerThousand = millionths(p.PerHour / 3600 / requests * 1000)
	}
	if tokens > 0 {
		p.PerMillionOutput = millionths(p.PerHour / 3600 / tokens * 1e6)
	}
	return p
}
