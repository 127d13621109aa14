package workload

import (
	"math/big"
	"strings"
	"testing"
	"time"
)

// Seconds are taken digit by digit: a float would be a nanosecond off at the half.
func TestParseDecimalIsExact(t *testing.T) {
	for _, test := range []struct {
		text  string
		scale int
		want  int64
		fails bool
	}{
		{"0", 9, 0, false}, {"0.0", 9, 0, false}, {"5.8926549999999995", 9, 5892655000, false}, {"19440110.0", 9, 19440110e9, false},
		{"1872000", 6, 1872e9, false}, {"0.0000000005", 9, 1, false}, {"0.00000000049999999999", 9, 0, false}, {"-0.0000000005", 9, -1, false},
		{"5e-06", 9, 5000, false}, {"1.25E+2", 9, 125e9, false}, {".5", 9, 5e8, false}, {"7.", 9, 7e9, false}, {"+3", 0, 3, false},
		{"0e999999999", 9, 0, false}, {"1e-999999999", 9, 0, false}, {"101537000", 0, 101537000, false},
		{strings.Repeat("0", 50) + "1" + ".0", 9, 1e9, false}, {"4611686018427387904", 0, maxInstant, false},
		{"4611686018427387905", 0, 0, true}, {"1e10", 9, 0, true}, {"99999999999999999999999", 0, 0, true},
		{"", 9, 0, true}, {".", 9, 0, true}, {"-", 9, 0, true}, {"1.2.3", 9, 0, true}, {"1e", 9, 0, true}, {"e5", 9, 0, true}, {"nan", 9, 0, true},
		{"inf", 9, 0, true}, {"0x10", 9, 0, true}, {"1 2", 9, 0, true}, {"1e5e5", 9, 0, true}, {"1_000", 9, 0, true},
	} {
		got, err := parseDecimal([]byte(test.text), test.scale)
		if got != test.want || (err != nil) != test.fails {
			t.Errorf("parseDecimal(%q, %d) = %d, %v, want %d, failing %v", test.text, test.scale, got, err, test.want, test.fails)
		}
	}
}

// The hand-written reader against arbitrary precision, on anything.
func FuzzTraceDecimal(f *testing.F) {
	for _, seed := range []string{"5.8926549999999995", "5e-06", "-0.5", "123456789.987654321987", "1E3", "4611686018.427387904", "0000.1e1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := parseDecimal([]byte(text), 9)
		if err != nil || len(text) > 40 {
			return
		}
		if e := strings.IndexAny(text, "eE"); e >= 0 && len(text)-e > 5 {
			return // an exponent too large to write out
		}
		exact, ok := new(big.Rat).SetString(text)
		if !ok {
			t.Fatalf("parseDecimal(%q) = %d, want an error", text, got)
		}
		exact.Mul(exact, big.NewRat(1e9, 1))
		exact.Sub(exact, new(big.Rat).SetInt64(got))
		if exact.Abs(exact).Cmp(big.NewRat(1, 2)) > 0 {
			t.Errorf("parseDecimal(%q) = %d, off by %v ns", text, got, exact.FloatString(3))
		}
	})
}

func TestParseTokens(t *testing.T) {
	for _, test := range []struct {
		text string
		want int32
		err  error
	}{
		{"0", 0, nil}, {"4808", 4808, nil}, {"472.0", 472, nil}, {"100000000", maxTokens, nil}, {"00012", 12, nil},
		{"100000001", 0, errTokens}, {"99999999999999999999999999", 0, errTokens}, {"-1", 0, errNegative}, {"472.5", 0, errWhole},
		{"", 0, errWhole}, {"abc", 0, errWhole}, {"1e3", 0, errWhole}, {"12 ", 0, errWhole}, {"99999999999abc", 0, errWhole}, {".0", 0, errWhole},
	} {
		if got, err := parseTokens([]byte(test.text)); got != test.want && err == nil || err != test.err {
			t.Errorf("parseTokens(%q) = %d, %v, want %d, %v", test.text, got, err, test.want, test.err)
		}
	}
}

func TestParseIntegers(t *testing.T) {
	for _, test := range []struct {
		text  string
		want  int64
		fails bool
	}{
		{"0", 0, false}, {"-9223372036854775808", -1 << 63, false}, {"9223372036854775807", 1<<63 - 1, false},
		{"9223372036854775808", 0, true}, {"-9223372036854775809", 0, true}, {"18446744073709551616", 0, true}, {"-", 0, true}, {"", 0, true}, {"1.0", 0, true},
	} {
		if got, err := parseInt([]byte(test.text)); got != test.want || (err != nil) != test.fails {
			t.Errorf("parseInt(%q) = %d, %v, want %d, failing %v", test.text, got, err, test.want, test.fails)
		}
	}
	if got, err := parseUint([]byte("18446744073709551615")); got != 1<<64-1 || err != nil {
		t.Errorf("parseUint(2^64-1) = %d, %v", got, err)
	}
}

// Dates agree with the standard library, whatever the fraction and the zone.
func TestParseDatetime(t *testing.T) {
	for _, text := range []string{
		"2023-11-16T18:17:03.9799600Z", "1970-01-01T00:00:00Z", "2000-02-29T23:59:59.999999999Z", "2024-02-29T12:00:00+05:30",
		"2024-03-01T00:00:00-08:00", "2024-12-31T23:59:59.1Z", "2099-12-31T23:59:59Z", "2023-03-01T00:00:00.000001+00:00",
	} {
		want, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := parseDatetime([]byte(text)); got != want.UnixNano() || err != nil {
			t.Errorf("parseDatetime(%q) = %d, %v, want %d", text, got, err, want.UnixNano())
		}
	}
	for day := range 130 * 366 {
		want := time.Date(1970, 1, 1+day, 1, 2, 3, 0, time.UTC)
		text := want.Format("2006-01-02 15:04:05")
		if got, err := parseDatetime([]byte(text)); want.Year() < 2100 && (got != want.UnixNano() || err != nil) {
			t.Fatalf("parseDatetime(%q) = %d, %v, want %d", text, got, err, want.UnixNano())
		}
	}
	same := int64(1700158623) * 1e9
	for _, text := range []string{"2023-11-16 18:17:03", "2023-11-16 18:17:03 UTC", "2023-11-16 20:17:03+02", "2023-11-16 20:47:03+0230", "2023-11-16t18:17:03z", "2023-11-16 18:17:02.9999999996"} {
		if got, err := parseDatetime([]byte(text)); got != same || err != nil {
			t.Errorf("parseDatetime(%q) = %d, %v, want %d", text, got, err, same)
		}
	}
	for _, text := range []string{
		"", "2023-11-16", "2023-11-16 18:17:03.", "2023-11-16 18:17:03.5x", "2023-13-16 18:17:03", "2023-02-29 18:17:03", "2023-00-10 00:00:00",
		"2023-11-31 00:00:00", "2023-11-16 24:00:00", "2023-11-16 18:60:03", "2023-11-16 18:17:60", "2023/11/16 18:17:03", "2023-11-16 18:17:03+1", "2023-11-16 18:17:03+99:00", "1969-12-31 23:59:59",
	} {
		if got, err := parseDatetime([]byte(text)); err == nil {
			t.Errorf("parseDatetime(%q) = %d, want an error", text, got)
		}
	}
}
