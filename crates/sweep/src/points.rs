//! The points of a space: an enumeration from an index to a platform, its changed keys, and one case of a question.

use crate::error::SpaceError;
use crate::options::{Asking, OPTIONS};
use crate::settings::{Combine, Settings};
use crate::space::{Asked, Space};
use lanemark_bench::{Case, Question};
use lanemark_platform::{Origin, Platform};
use lanemark_record::{Quantity, SweptBy};
use lanemark_runner::{Cancel, Changes, OpenTarget, Setup, Target};
use lanemark_units::{format_size, parse_size};
use std::collections::HashSet;
use std::fmt::Write as _;
use twox_hash::XxHash3_128;

/// The points of a space, with every platform loaded and every question split into its cases.
///
/// Points are numbered from 0: platforms in the order of the file, then combinations of keys, then questions with their
/// options and cases. Everything about a point follows from its number.
pub struct Points {
    pub(crate) by: SweptBy,
    pub(crate) no_fast_forward: bool,
    settings: Settings,
    combinations: u64,
    pub(crate) platforms: Vec<Listed>,
    len: u64,
}

/// A platform of a space, and what it is asked.
pub(crate) struct Listed {
    pub(crate) platform: Platform,
    /// Hash input that is common to all its points.
    identity: String,
    /// The values of each key, in the form of the platform.
    values: Vec<Vec<String>>,
    pub(crate) asks: Vec<Ask>,
    /// Number of its first point.
    first: u64,
}

/// A question with one value of each option, and one of its cases.
pub(crate) struct Ask {
    pub(crate) question: &'static Question,
    /// Columns and values of the options that are not columns of every row.
    pub(crate) options: Vec<(&'static str, String)>,
    pub(crate) asking: Asking,
    /// Number that asks with the same question and options share.
    pub(crate) group: usize,
    pub(crate) case: Option<Wanted>,
    identity: String,
}

impl Ask {
    /// Everything that it asks, however the sizes were written.
    fn content(&self) -> String {
        match &self.case {
            None => self.identity.clone(),
            Some(Wanted { case, nth }) => {
                let Case { method, size, alignment, .. } = case;
                format!("{} {:?} {method} {size} {alignment} {nth}", self.question.name, self.options)
            }
        }
    }
}

/// A case, as it is found again on the platform with changed keys.
#[derive(Clone, PartialEq)]
pub(crate) struct Wanted {
    pub(crate) case: Case,
    /// Its position among the cases of the same method, size and alignment.
    pub(crate) nth: usize,
}

impl Wanted {
    fn is_like(&self, other: &Wanted) -> bool {
        is_like(&self.case, &other.case) && self.nth == other.nth
    }

    /// The case among those of a platform.
    pub(crate) fn find<'a>(&self, cases: &'a [Case]) -> Option<&'a Case> {
        cases.iter().filter(|case| is_like(case, &self.case)).nth(self.nth)
    }
}

fn is_like(one: &Case, other: &Case) -> bool {
    (one.size, one.alignment) == (other.size, other.alignment) && one.method == other.method
}

/// One point, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    /// Its number.
    pub index: u64,
    /// Hash of everything that its figures depend on.
    pub key: u128,
    /// Name of the platform.
    pub platform: String,
    /// Changed keys and their values.
    pub with: Vec<(String, String)>,
    /// Name of the question.
    pub question: &'static str,
    /// Columns and values of the options.
    pub options: Vec<(&'static str, String)>,
    /// Label of the method; empty if the question has no case on this platform.
    pub method: String,
    /// Bytes per iteration.
    pub size_bytes: Option<u64>,
    /// Offset of the first byte.
    pub alignment_bytes: Option<u64>,
    /// Quantity of the figure.
    pub quantity: Quantity,
}

/// Largest number of combinations of keys in which cases are searched, per platform.
const MOST_SAMPLES: usize = 256;

impl Points {
    /// Loads the platforms of a space and lists the cases of its questions.
    ///
    /// A question may have other cases on other platforms and with other keys. Those that it has with the first value
    /// of every key, and with each other value of one key, are listed. One that a combination lacks is a row with the
    /// reason.
    ///
    /// # Errors
    /// [`SpaceError`] if a platform cannot be loaded, a key exists on none of them, or the space is too large.
    pub fn of(space: &Space) -> Result<Points, SpaceError> {
        let mut platforms: Vec<Platform> = Vec::new();
        for name in &space.platforms {
            let platform = load(space, name)?;
            if platforms.iter().any(|other| other.name == platform.name) {
                let message = format!("two platforms are called {}: change `name` in one file", platform.name);
                return Err(SpaceError::key(&space.file, "platforms", message));
            }
            platforms.push(platform);
        }
        check_keys(space, &platforms)?;
        let too_large = || SpaceError::key(&space.file, "with", "has more than 2^64 combinations; use fewer values");
        let combinations = space.settings.len().ok_or_else(too_large)?;
        let (mut listed, mut len) = (Vec::new(), 0_u64);
        for platform in platforms {
            let asks = asks(space, &platform);
            let mut asked = HashSet::new();
            if let Some(again) = asks.iter().find(|ask| !asked.insert(ask.content())) {
                let size = again.case.as_ref().map_or_else(String::new, |wanted| format_size(wanted.case.size));
                let name = again.question.name;
                let message =
                    format!("{name} is asked twice with the same options and case ({size}); keep one of them");
                return Err(SpaceError::key(&space.file, "question", message));
            }
            let identity = identity(space, &platform);
            let values = normal_values(&space.settings, &platform);
            for ((key, _), values) in space.settings.keys.iter().zip(&values) {
                let again = values.iter().enumerate().find(|(place, value)| values[..*place].contains(value));
                if let Some((_, value)) = again.filter(|_| values.len() < 1 << 12) {
                    let message = format!("lists {value} twice; keep one of them");
                    return Err(SpaceError::key(&space.file, format!("with.{key}"), message));
                }
            }
            let first = len;
            let more = combinations.checked_mul(asks.len() as u64);
            len = more.and_then(|more| len.checked_add(more)).ok_or_else(too_large)?;
            listed.push(Listed { platform, identity, values, asks, first });
        }
        Ok(Points {
            by: space.by,
            no_fast_forward: space.no_fast_forward,
            settings: space.settings.clone(),
            combinations,
            platforms: listed,
            len,
        })
    }

    /// Number of points.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.len
    }

    /// Whether there is no point.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Source of the figures.
    #[must_use]
    pub const fn by(&self) -> SweptBy {
        self.by
    }

    /// Point number `index`; `None` if there are fewer.
    #[must_use]
    pub fn point(&self, index: u64) -> Option<Point> {
        let Place { listed, ask, combination } = self.place(index)?;
        let case = ask.case.as_ref().map(|wanted| &wanted.case);
        Some(Point {
            index,
            key: self.key_of(listed, ask, combination),
            platform: listed.platform.name.clone(),
            with: self.with(listed, combination),
            question: ask.question.name,
            options: ask.options.clone(),
            method: case.map(|case| case.method.to_string()).unwrap_or_default(),
            size_bytes: case.map(|case| case.size).or_else(|| one(ask.asking.axes.sizes.as_ref())),
            alignment_bytes: case.map(|case| case.alignment).or_else(|| one(ask.asking.axes.alignments.as_ref())),
            quantity: ask.question.quantity,
        })
    }

    /// Hash of everything that the figures of point number `index` depend on: the platform as it was loaded, the changed
    /// keys, the question with its options and case, and the sources of this program.
    #[must_use]
    pub fn key(&self, index: u64) -> Option<u128> {
        let Place { listed, ask, combination } = self.place(index)?;
        Some(self.key_of(listed, ask, combination))
    }

    /// The parts of point number `index`.
    pub(crate) fn place(&self, index: u64) -> Option<Place<'_>> {
        if index >= self.len {
            return None;
        }
        let after = self.platforms.partition_point(|listed| listed.first <= index);
        let listed = self.platforms.get(after.checked_sub(1)?)?;
        let asks = listed.asks.len() as u64;
        let within = index - listed.first;
        let combination = within.checked_div(asks).filter(|combination| *combination < self.combinations)?;
        Some(Place { listed, ask: listed.asks.get((within % asks) as usize)?, combination })
    }

    /// Changed keys and values of a combination.
    pub(crate) fn with(&self, listed: &Listed, combination: u64) -> Vec<(String, String)> {
        let places = self.settings.places(combination);
        let keys = self.settings.keys.iter().zip(&listed.values).zip(places);
        keys.map(|(((key, _), values), place)| (key.clone(), values.get(place).cloned().unwrap_or_default())).collect()
    }

    fn key_of(&self, listed: &Listed, ask: &Ask, combination: u64) -> u128 {
        let mut text = String::with_capacity(512);
        text.push_str(&listed.identity);
        text.push_str(&ask.identity);
        for (((key, _), values), place) in
            self.settings.keys.iter().zip(&listed.values).zip(self.settings.places(combination))
        {
            part(&mut text, key);
            part(&mut text, values.get(place).map_or("", String::as_str));
        }
        XxHash3_128::oneshot(text.as_bytes())
    }
}

/// The only value of an axis.
fn one(axis: Option<&Vec<u64>>) -> Option<u64> {
    match axis?.as_slice() {
        [only] => Some(*only),
        _ => None,
    }
}

/// The parts of a point.
pub(crate) struct Place<'a> {
    pub(crate) listed: &'a Listed,
    pub(crate) ask: &'a Ask,
    pub(crate) combination: u64,
}

/// Appends a part with its length, so that no two lists of parts give the same text.
fn part(text: &mut String, part: &str) {
    // Writing to a String cannot fail.
    let _ = write!(text, "{}:{part};", part.len());
}

fn load(space: &Space, name: &str) -> Result<Platform, SpaceError> {
    let is_built_in = lanemark_runner::is_built_in(name);
    let path = if is_built_in { name.to_owned() } else { space.folder.join(name).to_string_lossy().into_owned() };
    lanemark_runner::platform(&path)
        .map_err(|source| SpaceError::Platform { file: space.file.clone(), source: Box::new(source) })
}

fn origin() -> Origin {
    Origin::Assumed("varied".to_owned())
}

/// Refuses a key that no platform has or accepts.
fn check_keys(space: &Space, platforms: &[Platform]) -> Result<(), SpaceError> {
    for (key, values) in &space.settings.keys {
        let mut refused = None;
        let is_known = platforms.iter().any(|platform| {
            platform.value_text(key).is_some()
                || values.iter().any(|value| match platform.with_text(key, value, origin()) {
                    Ok(_) => true,
                    Err(error) => {
                        refused.get_or_insert(error);
                        false
                    }
                })
        });
        if let Some(error) = refused.filter(|_| !is_known) {
            return Err(SpaceError::key(&space.file, format!("with.{key}"), error.to_string()));
        }
    }
    Ok(())
}

/// The values of each key as the platform would print them; a refused value stays as it is.
fn normal_values(settings: &Settings, platform: &Platform) -> Vec<Vec<String>> {
    let normal = |key: &str, value: &String| {
        let changed = platform.with_text(key, value, origin()).ok();
        changed.and_then(|platform| platform.value_text(key)).unwrap_or_else(|| value.clone())
    };
    settings.keys.iter().map(|(key, values)| values.iter().map(|value| normal(key, value)).collect()).collect()
}

/// Everything that the figures of all points of a platform depend on.
fn identity(space: &Space, platform: &Platform) -> String {
    let mut text = String::new();
    part(&mut text, "sweep 1");
    part(&mut text, env!("CARGO_PKG_VERSION"));
    part(&mut text, env!("LANEMARK_SEMANTICS"));
    let digest = XxHash3_128::oneshot(platform.to_json().to_string().as_bytes());
    part(&mut text, &format!("{digest:032x}"));
    part(&mut text, space.by.name());
    part(&mut text, if space.no_fast_forward { "every transfer" } else { "" });
    text
}

/// What a platform is asked: each question with each combination of its options, and each case of it.
fn asks(space: &Space, platform: &Platform) -> Vec<Ask> {
    let targets: Vec<OpenTarget> = samples(&space.settings)
        .into_iter()
        .chain([Vec::new()])
        .filter_map(|with| {
            let setup = Setup { changes: Changes { with, ..Changes::default() }, ..Setup::default() };
            Target::Platform(Box::new(platform.clone())).open(&setup, &Cancel::new()).ok()
        })
        .collect();
    let changed = if targets.len() > 1 { &targets[..targets.len() - 1] } else { &targets[..] };
    let (mut asks, mut group) = (Vec::new(), 0);
    for asked in &space.questions {
        let Some(question) = lanemark_bench::question(&asked.question) else { continue };
        for options in options(asked) {
            let mut asking = Asking::default();
            for (option, value) in &options {
                if let Some(row) = OPTIONS.iter().find(|row| row.name == option) {
                    // The values were checked with the file.
                    let _ = (row.set)(&mut asking, value);
                }
            }
            let wanted = wanted(question, &asking, changed);
            let cases = if wanted.is_empty() { vec![None] } else { wanted.into_iter().map(Some).collect() };
            for case in cases {
                let identity = ask_identity(question, &options, case.as_ref());
                let columns = columns(&options);
                asks.push(Ask { question, options: columns, asking: asking.clone(), group, case, identity });
            }
            group += 1;
        }
    }
    asks
}

/// The options as columns, without those that every row has.
fn columns(options: &[(String, String)]) -> Vec<(&'static str, String)> {
    let column = |(name, value): &(String, String)| {
        let row = OPTIONS.iter().find(|row| row.name == name)?;
        (!matches!(row.name, "sizes" | "align")).then(|| (row.column, value.clone()))
    };
    options.iter().filter_map(column).collect()
}

fn ask_identity(question: &Question, options: &[(String, String)], wanted: Option<&Wanted>) -> String {
    let mut text = String::new();
    part(&mut text, question.name);
    for (name, value) in options {
        part(&mut text, name);
        part(&mut text, value);
        if let (true, Ok(bytes)) = (name == "matrix", std::fs::read(value)) {
            part(&mut text, &format!("{:032x}", XxHash3_128::oneshot(&bytes)));
        }
    }
    if let Some(Wanted { case, nth }) = wanted {
        let method = serde_json::to_string(&case.method).unwrap_or_else(|_| case.method.to_string());
        part(&mut text, &method);
        part(&mut text, &format!("{} {} {nth}", case.size, case.alignment));
    }
    part(&mut text, "values");
    text
}

/// Every combination of the values of the options.
fn options(asked: &Asked) -> Vec<Vec<(String, String)>> {
    let normal = |name: &str, value: &String| {
        // Bytes are written in several ways: 1M is 1048576.
        let is_bytes = OPTIONS.iter().any(|row| row.name == name && row.column.ends_with("_bytes"));
        let bytes = parse_size(value).ok().filter(|_| is_bytes);
        bytes.map_or_else(|| value.clone(), |bytes| bytes.to_string())
    };
    let all = |(name, values): &(String, Vec<String>)| {
        (name.clone(), values.iter().map(|value| normal(name, value)).collect())
    };
    let settings = Settings { keys: asked.options.iter().map(all).collect(), combine: Combine::Product };
    (0..settings.len().unwrap_or(0)).map(|nth| settings.combination(nth)).collect()
}

/// Combinations of keys whose cases are listed: the first values, and each other value of one key.
fn samples(settings: &Settings) -> Vec<Vec<(String, String)>> {
    let mut samples = vec![settings.combination(0)];
    match settings.combine {
        Combine::Zip => samples.extend((1..settings.len().unwrap_or(1)).map(|nth| settings.combination(nth))),
        Combine::Product => {
            for (place, (_, values)) in settings.keys.iter().enumerate() {
                samples.extend(values.iter().skip(1).take(MOST_SAMPLES).map(|value| {
                    let mut with = settings.combination(0);
                    with[place].1.clone_from(value);
                    with
                }));
            }
        }
    }
    samples.truncate(MOST_SAMPLES);
    samples
}

/// The cases of a question on any of these targets, in the order of the first that has them.
fn wanted(question: &'static Question, asking: &Asking, targets: &[OpenTarget]) -> Vec<Wanted> {
    let mut all: Vec<Wanted> = Vec::new();
    let mut before: Vec<Case> = Vec::new();
    for target in targets {
        let Ok((cases, _)) = target.planned_cases(question, &asking.axes) else { continue };
        if cases == before {
            continue;
        }
        for (place, case) in cases.iter().enumerate() {
            let nth = cases[..place].iter().filter(|other| is_like(other, case)).count();
            let wanted = Wanted { case: case.clone(), nth };
            if !all.iter().any(|other| other.is_like(&wanted)) {
                all.push(wanted);
            }
        }
        before = cases;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(text: &str) -> Points {
        Points::of(&Space::parse("a.toml", text).unwrap()).unwrap()
    }

    const SPACE: &str = r#"
schema = 1
platforms = ["card-gen5-x16", "rosta-virtex7"]
[with]
dma.tags = "32..256*2"
link.mrrs_bytes = [128, 512]
[[question]]
name = "dma_read_bandwidth"
sizes = "4K,64K"
flows = "host:0"
[[question]]
name = "mmio_read_latency"
memory_type = "uc"
access = [4, 8]
"#;

    #[test]
    fn every_index_is_another_point_with_another_key() {
        let points = points(SPACE);
        let all: Vec<Point> = (0..points.len()).map(|index| points.point(index).unwrap()).collect();
        assert_eq!(all.len(), 2 * 8 * 4);
        assert_eq!(all.iter().map(|point| point.key).collect::<HashSet<u128>>().len(), all.len());
        assert_eq!(points.point(points.len()), None);
        assert_eq!(points.key(5), Some(all[5].key));
        let with: Vec<&str> = all[13].with.iter().map(|(_, value)| value.as_str()).collect();
        assert_eq!((all[13].index, with, all[13].size_bytes), (13, vec!["64", "512"], Some(65536)));
        assert_eq!((all[15].question, all[15].options[1].1.as_str()), ("mmio_read_latency", "8"));
        assert_eq!(all[32].platform, "rosta-virtex7");
    }

    #[test]
    fn a_key_does_not_depend_on_the_other_points() {
        let all = points(SPACE);
        let fewer = SPACE.replace("[128, 512]", "\"512B\"").replace("\"card-gen5-x16\", ", "").replace("[4, 8]", "8");
        let fewer = points(&fewer);
        let keys: HashSet<u128> = (0..all.len()).filter_map(|index| all.key(index)).collect();
        assert!((0..fewer.len()).all(|index| keys.contains(&fewer.key(index).unwrap())));
    }

    #[test]
    fn what_changes_a_figure_changes_the_key() {
        let key = |text: &str| points(text).key(0).unwrap();
        let base = key(SPACE);
        for (old, new) in [
            ("schema = 1", "schema = 1\nby = \"simulation\""),
            ("schema = 1", "schema = 1\nno_fast_forward = true"),
            ("32..256*2", "64..256*2"),
            ("4K,64K", "64K"),
            ("flows = \"host:0\"", "flows = \"host:0\"\niterations = 7"),
            ("\"card-gen5-x16\", ", ""),
        ] {
            assert!(SPACE.contains(old));
            assert_ne!(key(&SPACE.replacen(old, new, 1)), base, "{new}");
        }
        assert_eq!(key(&format!("{SPACE}\n# a remark")), base);
    }

    #[test]
    fn unknown_keys_and_platforms_are_refused() {
        let refused = |text: &str| match Points::of(&Space::parse("a.toml", text).unwrap()) {
            Ok(_) => panic!("{text}"),
            Err(error) => error.to_string(),
        };
        let text = refused(&SPACE.replace("dma.tags", "dma.tag"));
        assert!(text.contains("with.dma.tag: ") && text.contains("did you mean dma.tags"), "{text}");
        let text = refused(&SPACE.replace("rosta-virtex7", "nowhere.toml"));
        assert!(text.contains("a.toml: platforms: 'nowhere.toml' is not a target"), "{text}");
        let text = refused(&SPACE.replace("rosta-virtex7", "card-gen5-x16"));
        assert!(text.contains("two platforms are called card-gen5-x16"), "{text}");
        let text = refused(&SPACE.replace("[128, 512]", "[\"4K\", 4096]"));
        assert!(text.contains("with.link.mrrs_bytes: lists 4096 twice"), "{text}");
        let again = "[[question]]\nname = \"dma_read_bandwidth\"\nsizes = \"64K\"\nflows = \"host:0\"";
        let text = refused(&format!("{SPACE}{again}"));
        assert!(text.contains("question: dma_read_bandwidth is asked twice") && text.contains("(64KiB)"), "{text}");
        points(&format!("{SPACE}{}", again.replace("64K", "32K")));
        let window = "[[question]]\nname = \"dma_read_bandwidth\"\nsizes = \"4K\"\nwindow = [\"1M\", 1048576]";
        let text = refused(&format!("{SPACE}{window}"));
        assert!(text.contains("question: dma_read_bandwidth is asked twice"), "{text}");
    }
}
