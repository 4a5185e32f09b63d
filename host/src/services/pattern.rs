//! The shape of a regular expression: how large an automaton it asks for, and a short text that it matches.

use std::str::Chars;

/// Nested groups; the engines stop at about as many.
const MAX_DEPTH: usize = 100;
/// Characters of a generated text.
const MAX_SAMPLE: usize = 16_384;
/// States counted for a Unicode property, which stands for hundreds of ranges.
const PROPERTY_STATES: u64 = 256;
/// Code points that people can read, of which negated sets and `.` take the lowest: their very lowest is NUL.
const READABLE: [(u32, u32); 3] = [(0x21, 0x7e), (0x20, 0x20), (0xa1, 0x10_ffff)];

/// What a match costs at least per state and character when the engine backtracks.
const BACKTRACK_WORK: u64 = 16;
/// Characters that one step back may read again at the price of one state.
const REREAD: u64 = 32;

/// What a pattern costs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Price {
    /// About how many states an automaton for it has, repetitions unrolled.
    pub(super) states: u64,
    /// Whether it has look-around or back-references, for which an engine has to backtrack.
    pub(super) backtracks: bool,
}

impl Price {
    /// What the parser here does not understand is for the engine to judge, at the price of its length.
    pub(super) fn of(pattern: &str) -> Self {
        match Pattern::parse(pattern) {
            Some(parsed) => Self { states: parsed.states(), backtracks: parsed.backtracks },
            None => Self { states: pattern.len() as u64, backtracks: true },
        }
    }

    /// What one match may cost for a text of so many bytes: an automaton that cannot be made deterministic is in all
    /// its states at every byte; an engine that backtracks reads the rest of the text again and again.
    pub(super) fn work(self, length: usize) -> u64 {
        let length = length as u64;
        let again = if self.backtracks { BACKTRACK_WORK.max(length / REREAD) } else { 1 };
        self.states.saturating_mul(length).saturating_mul(again)
    }
}

/// A parsed pattern, in the syntax of ECMA-262 as far as it matters here.
#[derive(Debug)]
pub(super) struct Pattern {
    root: Node,
    backtracks: bool,
}

#[derive(Debug)]
enum Node {
    Set(Set),
    Sequence(Vec<Self>),
    Choice(Vec<Self>),
    Repeat {
        of: Box<Self>,
        min: u32,
        max: Option<u32>,
    },
    Group {
        of: Box<Self>,
        number: usize,
    },
    Again(usize),
    /// An assertion: matches nothing by itself.
    Look(Box<Self>),
    Empty,
}

#[derive(Debug, Default)]
struct Set {
    ranges: Vec<(u32, u32)>,
    negated: bool,
    properties: u64,
}

impl Set {
    fn of(ranges: &[(u32, u32)], negated: bool) -> Self {
        Self { ranges: ranges.to_vec(), negated, properties: 0 }
    }

    /// The lowest code point of the set, of a negated one the lowest that can be read.
    fn lowest(&self) -> Option<char> {
        if !self.negated {
            return self.ranges.iter().filter_map(|&(low, _)| char::from_u32(low)).min();
        }
        READABLE.iter().find_map(|&(low, high)| {
            let mut at = low;
            while let Some(&(_, end)) = self.ranges.iter().find(|&&(from, to)| from <= at && at <= to) {
                at = end.checked_add(1)?;
            }
            (at <= high).then(|| char::from_u32(at)).flatten()
        })
    }

    /// The same set, without negation.
    fn positive(&self) -> Vec<(u32, u32)> {
        if !self.negated {
            return self.ranges.clone();
        }
        let mut ranges = self.ranges.clone();
        ranges.sort_unstable();
        let (mut next, mut gaps) = (0, Vec::new());
        for (low, high) in ranges {
            if low > next {
                gaps.push((next, low - 1));
            }
            next = next.max(high.saturating_add(1));
        }
        if next <= 0x10_ffff {
            gaps.push((next, 0x10_ffff));
        }
        gaps
    }
}

impl Pattern {
    /// `None` if it is no pattern, or nested deeper than any engine allows.
    pub(super) fn parse(pattern: &str) -> Option<Self> {
        let mut parser = Parser { rest: pattern.chars(), groups: 0, backtracks: false };
        let root = parser.choice(0)?;
        parser.rest.as_str().is_empty().then_some(Self { root, backtracks: parser.backtracks })
    }

    fn states(&self) -> u64 {
        self.root.states()
    }

    /// A text that should match: fewest repetitions, first alternative, lowest code point; repetitions grow only
    /// to reach `length` characters.
    pub(super) fn sample(&self, length: usize) -> Option<String> {
        let mut shortest = Sample { text: String::new(), groups: Vec::new(), missing: 0 };
        shortest.write(&self.root)?;
        let missing = length.saturating_sub(shortest.text.chars().count());
        if missing == 0 {
            return Some(shortest.text);
        }
        let mut longer = Sample { text: String::new(), groups: Vec::new(), missing };
        longer.write(&self.root)?;
        Some(longer.text)
    }
}

impl Node {
    fn states(&self) -> u64 {
        match self {
            Self::Set(set) => 1 + set.ranges.len() as u64 / 4 + set.properties * PROPERTY_STATES,
            Self::Sequence(all) | Self::Choice(all) => {
                all.iter().fold(1, |sum: u64, node| sum.saturating_add(node.states()))
            }
            Self::Repeat { of, min, max } => {
                of.states().saturating_mul(u64::from(max.unwrap_or(*min).max(*min).max(1))).saturating_add(1)
            }
            Self::Group { of, .. } | Self::Look(of) => of.states().saturating_add(2),
            Self::Again(_) | Self::Empty => 1,
        }
    }
}

struct Sample {
    text: String,
    groups: Vec<(usize, String)>,
    /// Characters that repetitions should still add.
    missing: usize,
}

impl Sample {
    fn write(&mut self, node: &Node) -> Option<()> {
        match node {
            Node::Set(set) => self.text.push(set.lowest()?),
            Node::Sequence(all) => all.iter().try_for_each(|node| self.write(node))?,
            Node::Choice(all) => self.write(all.first()?)?,
            Node::Repeat { of, min, max } => {
                let mut count = 0;
                while count < *min || (self.missing > 0 && max.is_none_or(|max| count < max)) {
                    let before = self.text.len();
                    self.write(of)?;
                    let added = self.text.get(before..).map_or(0, |text| text.chars().count());
                    if added == 0 {
                        break;
                    }
                    if count >= *min {
                        self.missing = self.missing.saturating_sub(added);
                    }
                    count += 1;
                }
            }
            Node::Group { of, number } => {
                let before = self.text.len();
                self.write(of)?;
                let text = self.text.get(before..)?.to_owned();
                self.groups.push((*number, text));
            }
            Node::Again(number) => {
                if let Some((_, text)) = self.groups.iter().rev().find(|(group, _)| group == number) {
                    let text = text.clone();
                    self.text.push_str(&text);
                }
            }
            Node::Look(_) | Node::Empty => {}
        }
        (self.text.len() <= MAX_SAMPLE).then_some(())
    }
}

struct Parser<'a> {
    rest: Chars<'a>,
    groups: usize,
    backtracks: bool,
}

const DIGIT: &[(u32, u32)] = &[(0x30, 0x39)];
const WORD: &[(u32, u32)] = &[(0x30, 0x39), (0x41, 0x5a), (0x5f, 0x5f), (0x61, 0x7a)];
const SPACE: &[(u32, u32)] = &[(0x09, 0x0d), (0x20, 0x20), (0xa0, 0xa0), (0x2028, 0x2029), (0xfeff, 0xfeff)];

impl Parser<'_> {
    fn peek(&self) -> Option<char> {
        self.rest.clone().next()
    }

    fn eat(&mut self, text: &str) -> bool {
        let rest = self.rest.as_str().strip_prefix(text);
        if let Some(rest) = rest {
            self.rest = rest.chars();
        }
        rest.is_some()
    }

    fn choice(&mut self, depth: usize) -> Option<Node> {
        if depth > MAX_DEPTH {
            return None;
        }
        let mut all = vec![self.sequence(depth)?];
        while self.eat("|") {
            all.push(self.sequence(depth)?);
        }
        if all.len() == 1 { all.pop() } else { Some(Node::Choice(all)) }
    }

    fn sequence(&mut self, depth: usize) -> Option<Node> {
        let mut all = Vec::new();
        while let Some(next) = self.peek() {
            if matches!(next, '|' | ')') {
                break;
            }
            let atom = self.atom(depth)?;
            all.push(self.repeated(atom)?);
        }
        Some(Node::Sequence(all))
    }

    fn repeated(&mut self, mut atom: Node) -> Option<Node> {
        let mut layers = 0;
        while let Some((min, max)) = self.quantifier() {
            let _lazy_or_possessive = self.eat("?") || self.eat("+");
            atom = Node::Repeat { of: Box::new(atom), min, max };
            layers += 1;
            if layers > MAX_DEPTH {
                return None;
            }
        }
        Some(atom)
    }

    fn quantifier(&mut self) -> Option<(u32, Option<u32>)> {
        if self.eat("*") {
            return Some((0, None));
        }
        if self.eat("+") {
            return Some((1, None));
        }
        if self.eat("?") {
            return Some((0, Some(1)));
        }
        let (inside, rest) = self.rest.as_str().strip_prefix('{')?.split_once('}')?;
        let bounds = match inside.split_once(',') {
            None => inside.parse().ok().map(|count| (count, Some(count))),
            Some(("", max)) => max.parse().ok().map(|max| (0, Some(max))),
            Some((min, "")) => min.parse().ok().map(|min| (min, None)),
            Some((min, max)) => min.parse().ok().zip(max.parse().ok().map(Some)),
        };
        // Braces that are no quantifier stand for themselves.
        bounds.inspect(|_| self.rest = rest.chars())
    }

    fn atom(&mut self, depth: usize) -> Option<Node> {
        Some(match self.rest.next()? {
            '^' | '$' => Node::Empty,
            '.' => Node::Set(Set::of(&[(0x0a, 0x0a), (0x0d, 0x0d), (0x2028, 0x2029)], true)),
            '[' => Node::Set(self.class()?),
            '(' => self.group(depth)?,
            '\\' => self.escape()?,
            plain => Node::Set(Set::of(&[(plain.into(), plain.into())], false)),
        })
    }

    fn group(&mut self, depth: usize) -> Option<Node> {
        let mut look = false;
        let mut number = 0;
        if self.eat("?") {
            if self.eat("=") || self.eat("!") || self.eat("<=") || self.eat("<!") {
                look = true;
                self.backtracks = true;
            } else if self.eat("<") || self.eat("P<") {
                self.rest.find(|&next| next == '>')?;
                self.groups += 1;
                number = self.groups;
            } else {
                // `(?:`, `(?i:`, or flags for what follows, `(?i)`.
                loop {
                    match self.rest.next()? {
                        ':' => break,
                        ')' => return Some(Node::Empty),
                        flag if flag.is_ascii_alphabetic() || flag == '-' => {}
                        _ => return None,
                    }
                }
            }
        } else {
            self.groups += 1;
            number = self.groups;
        }
        let of = Box::new(self.choice(depth + 1)?);
        self.eat(")").then_some(if look { Node::Look(of) } else { Node::Group { of, number } })
    }

    fn escape(&mut self) -> Option<Node> {
        let next = self.peek()?;
        if matches!(next, 'b' | 'B' | 'A' | 'z' | 'Z') {
            self.rest.next();
            return Some(Node::Empty);
        }
        if let Some(number @ 1..) = next.to_digit(10) {
            self.rest.next();
            self.backtracks = true;
            return Some(Node::Again(number as usize));
        }
        if self.eat("k<") {
            self.rest.find(|&next| next == '>')?;
            self.backtracks = true;
            return Some(Node::Empty);
        }
        self.set_escape().map(Node::Set)
    }

    /// What stands after a backslash, inside a class or outside.
    fn set_escape(&mut self) -> Option<Set> {
        let code = match self.rest.next()? {
            'd' => return Some(Set::of(DIGIT, false)),
            'D' => return Some(Set::of(DIGIT, true)),
            'w' => return Some(Set::of(WORD, false)),
            'W' => return Some(Set::of(WORD, true)),
            's' => return Some(Set::of(SPACE, false)),
            'S' => return Some(Set::of(SPACE, true)),
            'p' => return self.property(false),
            'P' => return self.property(true),
            'n' => 0x0a,
            'r' => 0x0d,
            't' => 0x09,
            'f' => 0x0c,
            'v' => 0x0b,
            '0' => 0,
            'c' => u32::from(self.rest.next()?) % 32,
            'x' => self.hex(2)?,
            'u' => self.hex(4)?,
            other => other.into(),
        };
        Some(Set::of(&[(code, code)], false))
    }

    fn hex(&mut self, digits: usize) -> Option<u32> {
        let (code, rest) = match self.rest.as_str().strip_prefix('{') {
            Some(inside) => inside.split_once('}')?,
            None => self.rest.as_str().split_at_checked(digits)?,
        };
        let code = u32::from_str_radix(code, 16).ok()?;
        self.rest = rest.chars();
        Some(code)
    }

    /// `\p{..}`, by its ASCII members: the lowest of them is all that is needed.
    fn property(&mut self, negated: bool) -> Option<Set> {
        let name = match self.rest.as_str().strip_prefix('{') {
            Some(inside) => {
                let (name, rest) = inside.split_once('}')?;
                self.rest = rest.chars();
                name.to_owned()
            }
            None => self.rest.next()?.to_string(),
        };
        let value = name.rsplit_once('=').map_or(name.as_str(), |(_, value)| value);
        let ranges: &[(u32, u32)] = match value {
            "Lu" | "Uppercase" | "Uppercase_Letter" => &[(0x41, 0x5a)],
            "Ll" | "Lowercase" | "Lowercase_Letter" => &[(0x61, 0x7a)],
            "Nd" | "N" | "Number" | "Decimal_Number" => DIGIT,
            "P" | "Punctuation" => &[(0x21, 0x23), (0x25, 0x2a), (0x2c, 0x2f)],
            "S" | "Symbol" | "Sc" => &[(0x24, 0x24)],
            "Z" | "Zs" | "Space_Separator" => &[(0x20, 0x20)],
            _ => &[(0x41, 0x5a), (0x61, 0x7a)],
        };
        Some(Set { properties: 1, ..Set::of(ranges, negated) })
    }

    fn class(&mut self) -> Option<Set> {
        let mut set = Set { negated: self.eat("^"), ..Set::default() };
        loop {
            let low = match self.rest.next()? {
                ']' => return Some(set),
                '\\' if self.eat("b") => 0x08,
                '\\' => {
                    let inner = self.set_escape()?;
                    set.properties += inner.properties;
                    match inner.ranges.as_slice() {
                        &[(low, high)] if low == high && !inner.negated => low,
                        _ => {
                            set.ranges.extend(inner.positive());
                            continue;
                        }
                    }
                }
                plain => plain.into(),
            };
            let rest = self.rest.as_str();
            if !rest.starts_with('-') || rest.starts_with("-]") {
                set.ranges.push((low, low));
                continue;
            }
            self.eat("-");
            match self.rest.next()? {
                '\\' => {
                    let inner = self.set_escape()?;
                    match inner.ranges.as_slice() {
                        &[(high, end)] if high == end && !inner.negated => set.ranges.push((low, high)),
                        _ => {
                            set.ranges.extend([(low, low), (0x2d, 0x2d)]);
                            set.ranges.extend(inner.positive());
                        }
                    }
                }
                high => set.ranges.push((low, high.into())),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_short_first_and_low() {
        let table = [
            ("^[a-z]{2,5}$", 0, "aa"),
            ("^[A-Z]{3}-\\d+$", 0, "AAA-0"),
            ("^(foo|bar)?baz$", 0, "baz"),
            ("^(foo|bar)+$", 0, "foo"),
            ("^[a-z]+$", 4, "aaaa"),
            ("^\\d{4}-\\d{2}-\\d{2}T", 0, "0000-00-00T"),
            ("^.{3}$", 0, "!!!"),
            ("^[^/]+$", 0, "!"),
            ("^[^!-/]$", 0, "0"),
            ("^(a)(b)\\2\\1$", 0, "abba"),
            ("^(?!x)[x-z]$", 0, "x"),
            ("^#[0-9a-fA-F]{6}$", 0, "#000000"),
            ("^\\p{Lu}\\u0041\\x42$", 0, "AAB"),
            ("^[\\w.-]+@[\\w-]+\\.com$", 0, "-@-.com"),
            ("^{a}$", 0, "{a}"),
            ("", 0, ""),
        ];
        for (pattern, length, sample) in table {
            let parsed = Pattern::parse(pattern).unwrap_or_else(|| panic!("{pattern}"));
            assert_eq!(parsed.sample(length).as_deref(), Some(sample), "{pattern}");
        }
    }

    #[test]
    fn repetition_multiplies_states() {
        let states = |pattern: &str| Pattern::parse(pattern).map(|pattern| pattern.states());
        assert!(states("(a{1000}){1000}").is_some_and(|states| states > 1_000_000));
        assert!(states("^[a-z]{1,64}$").is_some_and(|states| states < 200));
        assert_eq!(states(&"(".repeat(100_000)), None);
        assert_eq!(states("a)"), None);
        assert!(states("(((((((((a{999}){999}){999}){999}){999}){999}){999}){999}){999}){999}").is_some());
    }

    #[test]
    fn samples_are_bounded() {
        let sample = |pattern, length| Pattern::parse(pattern).and_then(|pattern| pattern.sample(length));
        assert_eq!(sample("(((a{99999}){99999}){99999})", 0), None);
        assert_eq!(sample("^()+$", 100).as_deref(), Some(""));
        assert_eq!(sample("^[^\\d\\D]$", 0), None);
    }
}
