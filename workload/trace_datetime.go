package workload

// daysBefore counts the days of a common year before each month, January first.
var daysBefore = [13]int64{0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365}

// parseDatetime reads 2023-11-16 18:17:03.9799600 or 2024-05-10T00:00:00Z into
// nanoseconds since 1970. A fraction may have any number of digits or be absent; a
// time without a zone is taken as UTC. It is written out because time.Parse would
// take most of the time of reading a trace.
func parseDatetime(b []byte) (int64, error) {
	const shape = "dddd-dd-ddTdd:dd:dd"
	if len(b) < len(shape) {
		return 0, errDatetime
	}
	for i := range len(shape) {
		switch c := b[i]; shape[i] {
		case 'd':
			if c-'0' > 9 {
				return 0, errDatetime
			}
		case 'T':
			if c != ' ' && c != 'T' && c != 't' {
				return 0, errDatetime
			}
		default:
			if c != shape[i] {
				return 0, errDatetime
			}
		}
	}
	year := two(b)*100 + two(b[2:])
	month, day := two(b[5:]), two(b[8:])
	hour, minute, second := two(b[11:]), two(b[14:]), two(b[17:])
	if year < 1970 || year > 2099 {
		return 0, errInstant
	}
	leap := year%4 == 0 && (year%100 != 0 || year%400 == 0)
	if month < 1 || month > 12 || hour > 23 || minute > 59 || second > 59 {
		return 0, errDatetime
	}
	days := daysBefore[month] - daysBefore[month-1]
	if leap && month == 2 {
		days++
	}
	if day < 1 || day > days {
		return 0, errDatetime
	}

	nanos, rest := fraction(b[len(shape):])
	offset, ok := zone(rest)
	if nanos < 0 || !ok {
		return 0, errDatetime
	}

	y := year - 1 // whole years before this one
	date := y*365 + y/4 - y/100 + y/400 - epochDays + daysBefore[month-1] + day - 1
	if leap && month > 2 {
		date++
	}
	return (date*86400+hour*3600+minute*60+second-offset)*1e9 + nanos, nil
}

// epochDays are the days from 0001-01-01 to 1970-01-01.
const epochDays = 1969*365 + 1969/4 - 1969/100 + 1969/400

func two(b []byte) int64 { return int64(b[0]-'0')*10 + int64(b[1]-'0') }

// fraction reads ".9799600" as nanoseconds to the nearest, -1 if it is malformed, and
// returns what follows it. Nothing there is zero.
func fraction(b []byte) (nanos int64, rest []byte) {
	if len(b) == 0 || b[0] != '.' {
		return 0, b
	}
	unit := int64(1e8)
	i := 1
	for ; i < len(b) && b[i]-'0' <= 9; i++ {
		if i == 10 && b[i] >= '5' {
			nanos++
		}
		nanos += int64(b[i]-'0') * unit
		unit /= 10
	}
	if i == 1 {
		return -1, b
	}
	return nanos, b[i:]
}

// zone reads Z, +02:00, +0200 or +02 as seconds east of UTC; nothing is UTC.
func zone(b []byte) (seconds int64, ok bool) {
	switch {
	case len(b) == 0, len(b) == 1 && (b[0] == 'Z' || b[0] == 'z'), string(b) == " UTC":
		return 0, true
	case len(b) < 3 || b[0] != '+' && b[0] != '-':
		return 0, false
	}
	sign := int64(1)
	if b[0] == '-' {
		sign = -1
	}
	hours, minutes := b[1:3], b[3:]
	if len(minutes) == 3 && minutes[0] == ':' {
		minutes = minutes[1:]
	}
	for _, c := range hours {
		if c-'0' > 9 {
			return 0, false
		}
	}
	seconds = two(hours) * 3600
	switch len(minutes) {
	case 0:
	case 2:
		if minutes[0]-'0' > 5 || minutes[1]-'0' > 9 {
			return 0, false
		}
		seconds += two(minutes) * 60
	default:
		return 0, false
	}
	if seconds > 24*3600 {
		return 0, false
	}
	return sign * seconds, true
}
