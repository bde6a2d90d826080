//! A case as a file: a failing run that is kept as a test.

use crate::case::{Case, Step};
use crate::rule::{RULES, Rule};
use crate::situation::{SITUATIONS, Situation};
use crate::target::{TIMEOUT_CLOCKS, Target};
use lanemark_devices::{Direction, FileProblem};
use lanemark_units::did_you_mean;
use lanemark_wire::Rcb;
use std::fmt::Write;
use std::ops::RangeInclusive;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Version of the format.
const SCHEMA: u64 = 1;
/// Most transfers of a case.
const MOST_STEPS: usize = 1000;

const CASE_KEYS: [&str; 8] = ["schema", "rule", "timeout_clocks", "seed", "rcb_bytes", "tags", "is_scarce", "step"];
const STEP_KEYS: [&str; 11] = [
    "direction",
    "host_offset",
    "device_offset",
    "bytes",
    "mps_bytes",
    "mrrs_bytes",
    "has_interrupt",
    "legal",
    "illegal",
    "illegal_at_request",
    "seed",
];
const DIRECTIONS: [(Direction, &str); 2] = [(Direction::ToDevice, "to_device"), (Direction::ToHost, "to_host")];

/// A case, and the rule that a device broke in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CaseFile {
    /// The broken rule.
    pub rule: Rule,
    /// Completion timeout in clocks.
    pub timeout_clocks: u32,
    /// The case.
    pub case: Case,
}

impl CaseFile {
    /// The file as TOML; `comment` is its head.
    ///
    /// ```
    /// use lanemark_adversary::{Case, CaseFile, Rule, Target};
    /// use lanemark_devices::DeviceFile;
    ///
    /// let device = DeviceFile::parse("card.toml", include_str!("../../../rtl/card.toml"))?;
    /// let target = Target::new(&device, 2048)?;
    /// let kept = CaseFile { rule: Rule::Poison, timeout_clocks: 2048, case: Case::of_seed(7, &target, true) };
    /// assert_eq!(CaseFile::parse("case.toml", &kept.to_toml("kept"), &target)?, kept);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn to_toml(&self, comment: &str) -> String {
        let CaseFile { rule, timeout_clocks, case } = self;
        let mut text = String::new();
        // A write to a string does not fail.
        for line in comment.lines() {
            let _ = writeln!(text, "# {line}");
        }
        let _ = write!(
            text,
            "schema = {SCHEMA}\nrule = \"{}\"\ntimeout_clocks = {timeout_clocks}\nseed = \"{}\"\nrcb_bytes = {}\ntags = {}\n\
             is_scarce = {}\n",
            rule.row().name,
            case.seed,
            case.rcb.bytes(),
            case.tags,
            case.is_scarce
        );
        for step in &case.steps {
            let direction =
                DIRECTIONS.iter().find(|(direction, _)| *direction == step.direction).map_or("", |row| row.1);
            let legal: Vec<String> = step.legal.iter().map(|one| format!("\"{}\"", one.row().name)).collect();
            let _ = write!(
                text,
                "\n[[step]]\ndirection = \"{direction}\"\nhost_offset = {:#x}\ndevice_offset = {:#x}\nbytes = {}\n\
                 mps_bytes = {}\nmrrs_bytes = {}\nhas_interrupt = {}\nlegal = [{}]\n",
                step.host,
                step.device,
                step.bytes,
                step.mps,
                step.mrrs,
                step.has_interrupt,
                legal.join(", ")
            );
            if let Some((situation, requests)) = step.illegal {
                let _ = write!(text, "illegal = \"{}\"\nillegal_at_request = {requests}\n", situation.row().name);
            }
            let _ = writeln!(text, "seed = \"{}\"", step.seed);
        }
        text
    }

    /// Reads a file for a device. `file` is its name in messages.
    ///
    /// # Errors
    /// [`FileProblem`] with line and key, if the text is no case or the device cannot make its transfers.
    pub fn parse(file: &str, text: &str, target: &Target) -> Result<CaseFile, FileProblem> {
        let problem = |byte: usize, key: &str, message: String| FileProblem {
            file: file.to_owned(),
            line: 1 + text.bytes().take(byte).filter(|byte| *byte == b'\n').count(),
            key: key.to_owned(),
            message,
        };
        let table = DeTable::parse(text).map_err(|error| {
            let message = error.message().lines().collect::<Vec<_>>().join("; ");
            problem(error.span().map_or(0, |span| span.start), "", format!("not TOML: {message}"))
        })?;
        let top = Keys { problem: &problem, prefix: String::new(), start: 0, table: table.get_ref() };
        top.only(&CASE_KEYS)?;
        top.number("schema", SCHEMA..=SCHEMA)?;
        let rules = RULES.iter().map(|row| (row.rule, row.name));
        let rule = top.choice("rule", rules)?;
        let timeout_clocks = top.number("timeout_clocks", TIMEOUT_CLOCKS)?;
        let seed = top.seed()?;
        let rcb = if top.one_of("rcb_bytes", &[64, 128])? == 64 { Rcb::B64 } else { Rcb::B128 };
        let tags = top.one_of("tags", &[32, 256])? as u16;
        let is_scarce = top.flag("is_scarce")?;
        let mut steps = Vec::new();
        if let Some(found) = top.table.get("step") {
            let DeValue::Array(tables) = found.get_ref() else {
                return Err(problem(
                    found.span().start,
                    "step",
                    "is no list: write [[step]] and a key per line".to_owned(),
                ));
            };
            if tables.len() > MOST_STEPS {
                return Err(problem(found.span().start, "step", format!("more than {MOST_STEPS} transfers")));
            }
            for (place, table) in tables.iter().enumerate() {
                let prefix = format!("step.{}", place + 1);
                let start = table.span().start;
                let DeValue::Table(table) = table.get_ref() else {
                    return Err(problem(start, &prefix, "is no section: write [[step]] and a key per line".to_owned()));
                };
                steps.push(step(&Keys { problem: &problem, prefix: prefix + ".", start, table }, target)?);
            }
        }
        let case = Case { seed, rcb, tags, is_scarce, steps };
        Ok(CaseFile { rule, timeout_clocks: timeout_clocks as u32, case })
    }
}

/// Reads one transfer, which the device must be able to make.
fn step(keys: &Keys<'_>, target: &Target) -> Result<Step, FileProblem> {
    keys.only(&STEP_KEYS)?;
    let alignment = target.alignment();
    let aligned = |key: &str, range: RangeInclusive<u64>| {
        let number = keys.number(key, range)?;
        if number.is_multiple_of(alignment) {
            return Ok(number);
        }
        Err(keys
            .wrong(key, format!("must be a multiple of {alignment}, the alignment of the engine in the device file")))
    };
    let bytes = aligned("bytes", alignment..=target.most_bytes())?;
    let legal = keys.list("legal")?;
    let legal: Vec<Situation> =
        legal.into_iter().map(|name| keys.situation("legal", name, true)).collect::<Result<_, _>>()?;
    let illegal = match keys.table.get("illegal") {
        Some(_) => {
            let situation = keys.situation("illegal", keys.text("illegal")?, false)?;
            Some((situation, keys.number("illegal_at_request", 0..=1000)? as u32))
        }
        None => None,
    };
    let has_interrupt = keys.flag("has_interrupt")?;
    if has_interrupt && !target.has_interrupt() {
        let rule = "the engine in the device file has no interrupt_command".to_owned();
        return Err(keys.wrong("has_interrupt", rule));
    }
    Ok(Step {
        direction: keys.choice("direction", DIRECTIONS.into_iter())?,
        host: aligned("host_offset", 0..=target.host_bytes() - bytes)?,
        device: aligned("device_offset", 0..=target.memory_bytes() - bytes)?,
        bytes,
        mps: keys.one_of("mps_bytes", &[128, 256, 512])? as u16,
        mrrs: keys.one_of("mrrs_bytes", &[128, 256, 512])? as u16,
        has_interrupt,
        legal,
        illegal,
        seed: keys.seed()?,
    })
}

/// The keys of one section.
struct Keys<'a> {
    problem: &'a dyn Fn(usize, &str, String) -> FileProblem,
    prefix: String,
    start: usize,
    table: &'a DeTable<'a>,
}

impl Keys<'_> {
    fn only(&self, known: &[&str]) -> Result<(), FileProblem> {
        let unknown = self.table.keys().find(|name| !known.contains(&name.get_ref().as_ref()));
        let Some(unknown) = unknown else { return Ok(()) };
        let name: String = unknown.get_ref().chars().filter(|letter| !letter.is_control()).take(40).collect();
        let hint = did_you_mean(&name, known.iter().copied()).unwrap_or_else(|| format!("known: {}", known.join(", ")));
        let key = format!("{}{name}", self.prefix);
        Err((self.problem)(unknown.span().start, &key, format!("is unknown; {hint}")))
    }

    /// The problem of a key, at its line or that of its section.
    fn wrong(&self, key: &str, message: String) -> FileProblem {
        let start = self.table.get(key).map_or(self.start, |value| value.span().start);
        (self.problem)(start, &format!("{}{key}", self.prefix), message)
    }

    fn value(&self, key: &str) -> Result<&Spanned<DeValue<'_>>, FileProblem> {
        self.table.get(key).ok_or_else(|| self.wrong(key, "is missing".to_owned()))
    }

    fn number(&self, key: &str, range: RangeInclusive<u64>) -> Result<u64, FileProblem> {
        let number = match self.value(key)?.get_ref() {
            DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix()).ok(),
            _ => None,
        };
        let rule = || format!("must be a whole number from {} to {}", range.start(), range.end());
        number.filter(|number| range.contains(number)).ok_or_else(|| self.wrong(key, rule()))
    }

    fn one_of(&self, key: &str, numbers: &[u64]) -> Result<u64, FileProblem> {
        let number = self.number(key, 0..=u64::MAX)?;
        if numbers.contains(&number) {
            return Ok(number);
        }
        let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
        Err(self.wrong(key, format!("must be {}", numbers.join(" or "))))
    }

    fn flag(&self, key: &str) -> Result<bool, FileProblem> {
        match self.value(key)?.get_ref() {
            DeValue::Boolean(flag) => Ok(*flag),
            _ => Err(self.wrong(key, "must be true or false".to_owned())),
        }
    }

    fn text(&self, key: &str) -> Result<&str, FileProblem> {
        match self.value(key)?.get_ref() {
            DeValue::String(text) => Ok(text),
            _ => Err(self.wrong(key, "must be a text in quotes".to_owned())),
        }
    }

    fn list(&self, key: &str) -> Result<Vec<&str>, FileProblem> {
        let rule = || self.wrong(key, "must be a list of names in quotes".to_owned());
        let DeValue::Array(values) = self.value(key)?.get_ref() else { return Err(rule()) };
        let text = |value: &'_ Spanned<DeValue<'_>>| matches!(value.get_ref(), DeValue::String(_));
        if !values.iter().all(text) {
            return Err(rule());
        }
        Ok(values.iter().filter_map(|value| value.get_ref().as_str()).collect())
    }

    /// A seed, which exceeds the integers of TOML and is therefore a text.
    fn seed(&self) -> Result<u64, FileProblem> {
        let rule = || self.wrong("seed", "must be a whole number below 2^64 in quotes".to_owned());
        self.text("seed")?.parse().map_err(|_| rule())
    }

    fn choice<T>(&self, key: &str, rows: impl Iterator<Item = (T, &'static str)>) -> Result<T, FileProblem> {
        self.named(key, self.text(key)?, rows)
    }

    fn situation(&self, key: &str, name: &str, is_legal: bool) -> Result<Situation, FileProblem> {
        let rows = SITUATIONS.iter().filter(|row| row.is_legal == is_legal);
        self.named(key, name, rows.map(|row| (row.situation, row.name)))
    }

    fn named<T>(&self, key: &str, name: &str, rows: impl Iterator<Item = (T, &'static str)>) -> Result<T, FileProblem> {
        let mut known = Vec::new();
        for (item, known_name) in rows {
            if known_name == name {
                return Ok(item);
            }
            known.push(known_name);
        }
        let shown: String = name.chars().filter(|letter| !letter.is_control()).take(40).collect();
        let hint =
            did_you_mean(&shown, known.iter().copied()).unwrap_or_else(|| format!("known: {}", known.join(", ")));
        Err(self.wrong(key, format!("'{shown}' is unknown; {hint}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanemark_devices::DeviceFile;

    fn target() -> Target {
        let device = DeviceFile::parse("card.toml", include_str!("../../../rtl/card.toml")).unwrap();
        Target::new(&device, 2048).unwrap()
    }

    #[test]
    fn every_case_of_a_seed_is_read_as_it_was_written() {
        for seed in 0..200 {
            let case = Case::of_seed(seed, &target(), seed % 2 == 1);
            let kept = CaseFile { rule: RULES[seed as usize % RULES.len()].rule, timeout_clocks: 256, case };
            assert_eq!(CaseFile::parse("a.toml", &kept.to_toml("two\nlines"), &target()), Ok(kept));
        }
    }

    #[test]
    fn what_is_wrong_is_refused_with_line_and_key() {
        let step = Step { legal: vec![Situation::BackPressure], ..Case::of_seed(7, &target(), false).steps[0].clone() };
        let illegal = Some((Situation::WrongByteCount, 1));
        let step =
            Step { host: 64, device: 32, bytes: 128, mps: 128, mrrs: 128, has_interrupt: false, illegal, ..step };
        let case = Case { steps: vec![step], ..Case::of_seed(7, &target(), true) };
        let good = CaseFile { rule: Rule::Poison, timeout_clocks: 2048, case }.to_toml("");
        let wrong = [
            ("schema = 1", "schema = 2", "a.toml:1: schema: must be a whole number from 1 to 1"),
            ("\"poison\"", "\"poisen\"", "a.toml:2: rule: 'poisen' is unknown; did you mean poison?"),
            ("timeout_clocks = 2048", "timeout_clocks = 255", "a.toml:3: timeout_clocks: must be"),
            ("seed = \"7\"", "seed = 7", "a.toml:4: seed: must be a text in quotes"),
            ("bytes = 128\nmps", "bytes = 4097\nmps", "a.toml:13: step.1.bytes: must be a whole number from 1 to 4096"),
            ("device_offset = 0x20", "device_offset = 3969", "a.toml:12: step.1.device_offset: must be"),
            ("mps_bytes = 128", "mps_bytes = 127", "a.toml:14: step.1.mps_bytes: must be 128 or 256 or 512"),
            ("\"back_pressure\"", "\"wrong_byte_count\"", "a.toml:17: step.1.legal: 'wrong_byte_count' is unknown"),
            (
                "illegal_at_request",
                "illegal_at",
                "a.toml:19: step.1.illegal_at: is unknown; did you mean illegal_at_request",
            ),
            ("[[step]]", "[step]", "a.toml:9: step: is no list: write [[step]]"),
            ("is_scarce", "is scarce", "a.toml:7: not TOML:"),
        ];
        for (from, to, message) in wrong {
            assert_eq!(good.matches(from).count(), 1, "{from} in\n{good}");
            let error = CaseFile::parse("a.toml", &good.replace(from, to), &target()).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}\n{good}");
        }
        let without = good.replace("bytes = 128\nmps", "mps");
        let error = CaseFile::parse("a.toml", &without, &target()).unwrap_err().to_string();
        assert_eq!(error, "a.toml:9: step.1.bytes: is missing");
    }
}
