//! Access to one value of a platform by its path: `link.width_lanes`, `bar.0.size_bytes`, `region.sram.read_ns`.

use crate::check::check_platform;
use crate::key::{Key, Kind, Raw};
use crate::notes::Notes;
use crate::param::{Origin, Param};
use crate::platform::Platform;
use crate::problem::{PlatformError, Problem};
use crate::sections::{AnySection, SectionRow, label};
use crate::spec::{Dma, DmaRead, DmaWrite, Fault, Port};
use crate::text::{cut, said};
use lanemark_units::did_you_mean;

impl Platform {
    /// Returns a copy with one number replaced. `key` is a path such as `link.width_lanes` or `region.sram.read_ns`.
    /// The value is checked as in a file.
    ///
    /// # Errors
    /// [`PlatformError`] if there is no such number, the value is out of range or inconsistent with other keys, or
    /// the origin is empty.
    pub fn with(&self, key: &str, value: f64, origin: Origin) -> Result<Platform, PlatformError> {
        with(self, key, value, origin)
    }

    /// Returns a copy with one value of any kind replaced, given as text: a number, a size with its unit, a word,
    /// `true` or `false`. A missing section is created if all its keys have defaults.
    ///
    /// ```
    /// use lanemark_platform::{Origin, preset};
    /// let card = preset("card-gen5-x16").unwrap().unwrap();
    /// let origin = Origin::Assumed("a trial".to_owned());
    /// let paused = card.with_text("dma_read.segment_ns", "50", origin.clone())?.with_text("link.skp", "true", origin.clone())?;
    /// assert_eq!(paused.value_text("dma_read.segment_bytes").as_deref(), Some("2097152"));
    /// assert_eq!(paused.value_text("link.skp").as_deref(), Some("true"));
    /// assert!(card.with_text("link.skp", "1", origin).is_err());
    /// # Ok::<(), lanemark_platform::PlatformError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Platform::with`].
    pub fn with_text(&self, key: &str, text: &str, origin: Origin) -> Result<Platform, PlatformError> {
        with_text(self, key, text, origin)
    }

    /// As [`Platform::with_text`], for several changes of a key, a value and its origin, which are checked together: no
    /// order of dependent keys, such as `link.mps_bytes` and `link.posted_data_credits`, is wrong.
    ///
    /// # Errors
    /// As [`Platform::with`].
    pub fn with_texts<'a>(
        &self,
        changes: impl IntoIterator<Item = (&'a str, &'a str, Origin)>,
    ) -> Result<Platform, PlatformError> {
        let mut platform = self.clone();
        for (key, text, origin) in changes {
            replace(&mut platform, key, |kind| kind.take_text(text), &cut(text), origin)?;
        }
        checked(platform)
    }

    /// As [`Platform::with`], for several numbers, which are checked together.
    ///
    /// # Errors
    /// As [`Platform::with`].
    pub fn with_numbers<'a>(
        &self,
        changes: impl IntoIterator<Item = (&'a str, f64)>,
        origin: &Origin,
    ) -> Result<Platform, PlatformError> {
        let mut platform = self.clone();
        for (key, value) in changes {
            replace(&mut platform, key, |kind| kind.take_f64(value), &value.to_string(), origin.clone())?;
        }
        checked(platform)
    }

    /// The value at a path as in [`Platform::with`], as text; `None` if there is none.
    #[must_use]
    pub fn value_text(&self, key: &str) -> Option<String> {
        value_at(self, key).map(|(value, _)| value.to_string())
    }

    /// Returns a copy in which this port has another `Max_Payload_Size` in its Device Control register.
    ///
    /// ```
    /// use lanemark_platform::{Origin, preset};
    /// let rosta = preset("rosta-virtex7").unwrap().unwrap();
    /// let set = rosta.with_mps_bytes("fpga0", 256, Origin::Given("setpci".to_owned()))?;
    /// assert_eq!((set.mps_bytes_of("fpga0"), set.mps_bytes_of("fpga1")), (256, 128));
    /// assert!(rosta.with_mps_bytes("fpga0", 512, Origin::Given("setpci".to_owned())).is_err());
    /// # Ok::<(), lanemark_platform::PlatformError>(())
    /// ```
    ///
    /// # Errors
    /// [`PlatformError`] if there is no such port or the size exceeds what it supports.
    pub fn with_mps_bytes(&self, port: &str, bytes: u32, origin: Origin) -> Result<Platform, PlatformError> {
        with_mps(self, port, bytes, origin)
    }

    /// Returns a copy with one more injected fault.
    ///
    /// # Errors
    /// [`PlatformError`] if its port does not exist or the fault cannot occur there.
    pub fn with_fault(&self, fault: Fault) -> Result<Platform, PlatformError> {
        with_fault(self, fault)
    }

    /// Returns a copy with ACS P2P Request Redirect of this port enabled or disabled.
    ///
    /// ```
    /// use lanemark_platform::{Origin, preset};
    /// let rosta = preset("rosta-virtex7").unwrap().unwrap();
    /// let set = rosta.with_acs_redirect("rc47a/fpga0", true, Origin::Given("setpci".to_owned()))?;
    /// assert!(set.redirects("rc47a/fpga0") && !set.redirects("rc47a/fpga1"));
    /// assert!(rosta.with_acs_redirect("fpga0", true, Origin::Given("setpci".to_owned())).is_err());
    /// # Ok::<(), lanemark_platform::PlatformError>(())
    /// ```
    ///
    /// # Errors
    /// [`PlatformError`] if there is no such port or it is not a downstream port of a switch.
    pub fn with_acs_redirect(&self, port: &str, redirects: bool, origin: Origin) -> Result<Platform, PlatformError> {
        with_redirect(self, port, redirects, origin)
    }

    /// The keys of this platform that `path` may have meant, such as `did you mean link.latency_ns?`; `None` if none is
    /// similar.
    #[must_use]
    pub fn similar_keys(&self, path: &str) -> Option<String> {
        similar(self, path)
    }

    /// The number at a path as in [`Platform::with`], and its origin.
    #[must_use]
    pub fn number(&self, key: &str) -> Option<(f64, Origin)> {
        number_at(self, key)
    }
}

/// Default of the key at a path such as `memory.completion_bytes`, whatever a file says; 0 and 1 for `false` and `true`.
///
/// `None` for keys without a default, keys that take words, and unknown paths.
///
/// ```
/// assert_eq!(lanemark_platform::default_of("memory.completion_bytes"), Some(4096.0));
/// assert_eq!(lanemark_platform::default_of("dma.tags"), None);
/// ```
#[must_use]
pub fn default_of(path: &str) -> Option<f64> {
    key_at(path)?.default_number()
}

/// Bounds within which a fit searches the key at a path; `None` if it must be known.
///
/// ```
/// assert_eq!(lanemark_platform::search_bounds("dma.tags"), Some((8.0, 768.0)));
/// ```
#[must_use]
pub fn search_bounds(path: &str) -> Option<(f64, f64)> {
    key_at(path)?.searched
}

/// Least and greatest number that the key at a path accepts, in the unit of the key; `None` for words and unknown paths.
///
/// ```
/// assert_eq!(lanemark_platform::range_of("core.wc_buffers"), Some((1.0, 128.0)));
/// assert_eq!(lanemark_platform::range_of("link.ordering"), None);
/// ```
#[must_use]
pub fn range_of(path: &str) -> Option<(f64, f64)> {
    match key_at(path)?.kind {
        Kind::Ns(max) | Kind::ZeroOrNumber(_, max) => Some((0.0, max)),
        Kind::Number(min, max) => Some((min, max)),
        Kind::Count(min, max) | Kind::Size(min, max) => Some((min as f64, max as f64)),
        Kind::OneOf(these) => Some((*these.iter().min()? as f64, *these.iter().max()? as f64)),
        Kind::Choice(_) | Kind::Flag => None,
    }
}

fn key_at(path: &str) -> Option<&'static Key> {
    let (section, _, key) = split(path)?;
    row(section)?.keys.iter().find(|row| row.name == key)
}

/// Splits `region.sram.read_ns` into section, name (empty unless the section is repeated) and key.
fn split(path: &str) -> Option<(&str, &str, &str)> {
    let (section, rest) = path.split_once('.')?;
    let is_one_of_several = row(section).is_some_and(|row| row.is_repeated);
    match (is_one_of_several, rest.split_once('.')) {
        (true, Some((name, key))) => Some((section, name, key)),
        (true, None) | (false, Some(_)) => None,
        (false, None) => Some((section, "", rest)),
    }
}

fn with(platform: &Platform, path: &str, value: f64, origin: Origin) -> Result<Platform, PlatformError> {
    let mut changed = platform.clone();
    replace(&mut changed, path, |kind| kind.take_f64(value), &value.to_string(), origin)?;
    checked(changed)
}

fn with_text(platform: &Platform, path: &str, text: &str, origin: Origin) -> Result<Platform, PlatformError> {
    platform.with_texts([(path, text, origin)])
}

/// Replaces the value at a path, without a check of the platform; `shown` is its form in messages.
fn replace(
    platform: &mut Platform,
    path: &str,
    take: impl FnOnce(&Kind) -> Option<Raw>,
    shown: &str,
    origin: Origin,
) -> Result<(), PlatformError> {
    let (section, name, key) = split(path).ok_or_else(|| unknown(platform, path))?;
    if let Some(missing) = missing(platform, section, name) {
        let message = format!("{missing}{}", hint(platform, path));
        return Err(refused(platform, path, message));
    }
    let keys = row(section).map_or(&[][..], |row| row.keys);
    let row = keys.iter().find(|row| row.name == key).ok_or_else(|| unknown(platform, path))?;
    let out_of_range = || refused(platform, path, format!("is {shown}; {}", row.kind.wanted()));
    let raw = take(&row.kind).ok_or_else(out_of_range)?;
    make(platform, section, name).map_err(|message| refused(platform, path, message))?;
    let says = match origin.stated() {
        Origin::Given(text) | Origin::Assumed(text) | Origin::Default(text) => said(text),
        Origin::Unknown(_) | Origin::Inherited { .. } => false,
        Origin::FittedTo(ids) => !ids.is_empty() && ids.iter().all(|id| said(id)),
    };
    if !says {
        return Err(refused(platform, path, "must state its origin".to_owned()));
    }
    let is_set = find_mut(platform, section, name).is_some_and(|section| section.set(key, &raw, origin));
    if is_set { Ok(()) } else { Err(unknown(platform, path)) }
}

/// The error of a change to one path.
fn refused(platform: &Platform, path: &str, message: String) -> PlatformError {
    let problem = Problem { file: platform.name.clone(), line: 0, key: path.to_owned(), message };
    PlatformError { problems: vec![problem] }
}

fn unknown(platform: &Platform, path: &str) -> PlatformError {
    refused(platform, path, format!("there is no such number in this platform{}", hint(platform, path)))
}

/// The similar keys, as a clause.
fn hint(platform: &Platform, path: &str) -> String {
    similar(platform, path).map(|hint| format!("; {hint}")).unwrap_or_default()
}

/// A question that names the paths similar to `path`.
fn similar(platform: &Platform, path: &str) -> Option<String> {
    let of_section = |(row, sections): (&SectionRow, Vec<&dyn AnySection>)| {
        let prefixes: Vec<String> = if row.is_repeated {
            sections.iter().filter_map(|section| Some(format!("{}.{}", row.path, label(*section)?))).collect()
        } else {
            vec![row.path.to_owned()]
        };
        let keys: Vec<&str> = row.keys.iter().map(|key| key.name).collect();
        prefixes.into_iter().flat_map(move |prefix| keys.clone().into_iter().map(move |key| format!("{prefix}.{key}")))
    };
    let known: Vec<String> =
        platform.sections().into_iter().flat_map(|row| of_section(row).collect::<Vec<_>>()).collect();
    did_you_mean(path, known.iter().map(String::as_str))
}

/// A message if `section` is repeated and the platform has none called `name`. Ports exist without a section.
fn missing(platform: &Platform, section: &str, name: &str) -> Option<String> {
    let (row, sections) = platform.sections().into_iter().find(|(row, _)| row.path == section)?;
    let known: Vec<String> = sections.into_iter().filter_map(label).collect();
    if !row.is_repeated || section == Port::PATH || name.is_empty() || known.iter().any(|known| known == name) {
        None
    } else if known.is_empty() {
        let needs = needs(section);
        Some(format!("this platform has no section [[{section}]]{needs}: write it into a copy of the platform file"))
    } else {
        Some(format!("this platform has no [[{section}]] {name}; it has {}", known.join(", ")))
    }
}

/// The keys without a default of a section, as a clause after a comma; empty if there are none.
fn needs(section: &str) -> String {
    let (texts, keys) = row(section).map_or((&[][..], &[][..]), |row| (row.texts, row.keys));
    let needed = keys.iter().filter(|key| key.default.is_none()).map(|key| key.name);
    let needed: Vec<&str> = texts.iter().copied().chain(needed).collect();
    if needed.is_empty() { String::new() } else { format!(", which takes {}", needed.join(", ")) }
}

/// Creates a missing section, if all its keys have defaults.
///
/// # Errors
/// A message that names the keys without a default.
fn make(platform: &mut Platform, section: &str, name: &str) -> Result<(), String> {
    if section == Port::PATH {
        let names = platform.port_names();
        if !names.iter().any(|port| port == name) {
            return Err(format!("there is no port {name} in this platform; its ports: {}", names.join(", ")));
        }
        let _ = port_of(platform, name);
        return Ok(());
    }
    // These two sections describe the engine that [dma] declares.
    let is_of_dma = [DmaRead::PATH, DmaWrite::PATH].contains(&section);
    let section = if is_of_dma && platform.dma.is_none() { Dma::PATH } else { section };
    if platform.create_section(section) {
        return Ok(());
    }
    let needs = needs(section);
    Err(format!("this platform has no section [{section}]{needs}: write it into a copy of the platform file"))
}

/// Sets `Max_Payload_Size` of one port, with or without a `[[port]]` section.
fn with_mps(platform: &Platform, port: &str, bytes: u32, origin: Origin) -> Result<Platform, PlatformError> {
    let mut changed = platform.clone();
    port_of(&mut changed, port).mps_bytes = Param { value: bytes, origin, line: 0 };
    checked(changed)
}

/// Adds an injected fault.
fn with_fault(platform: &Platform, fault: Fault) -> Result<Platform, PlatformError> {
    let mut changed = platform.clone();
    changed.faults.push(fault);
    checked(changed)
}

/// Enables or disables redirection by a port.
fn with_redirect(platform: &Platform, port: &str, redirects: bool, origin: Origin) -> Result<Platform, PlatformError> {
    let mut changed = platform.clone();
    port_of(&mut changed, port).acs_redirect = Param { value: redirects, origin, line: 0 };
    checked(changed)
}

/// The `[[port]]` section of a port, created if missing.
fn port_of<'a>(platform: &'a mut Platform, name: &str) -> &'a mut Port {
    let place = platform.ports.iter().position(|other| other.name == name).unwrap_or_else(|| {
        let origin = || Origin::Default("as all ports without a [[port]] section".to_owned());
        let mps_bytes = Param { value: 0, origin: origin(), line: 0 };
        let acs_redirect = Param { value: false, origin: origin(), line: 0 };
        platform.ports.push(Port { name: name.to_owned(), mps_bytes, acs_redirect });
        platform.ports.len() - 1
    });
    &mut platform.ports[place]
}

/// Checks a platform after a change.
fn checked(changed: Platform) -> Result<Platform, PlatformError> {
    let mut notes = Notes::new(&changed.name, b"");
    check_platform(&changed, &mut notes);
    let mut problems = notes.problems();
    // Line numbers refer to the file before the change.
    for problem in &mut problems {
        problem.line = 0;
    }
    if problems.is_empty() { Ok(changed) } else { Err(PlatformError { problems }) }
}

fn number_at(platform: &Platform, path: &str) -> Option<(f64, Origin)> {
    match value_at(platform, path)? {
        (Raw::Number(number), origin) => Some((number, origin)),
        (Raw::Whole(whole), origin) => Some((whole as f64, origin)),
        (Raw::Word(_) | Raw::Flag(_), _) => None,
    }
}

fn value_at(platform: &Platform, path: &str) -> Option<(Raw, Origin)> {
    let (section, name, wanted) = split(path)?;
    let mut found = None;
    let mut visit = |key: &'static str, raw: Raw, origin: &Origin| {
        if key == wanted {
            found = Some((raw, origin.clone()));
        }
    };
    find(platform, section, name)?.each(&mut visit);
    found
}

/// The row of the section called `path`; `None` if the format has no such section.
fn row(path: &str) -> Option<&'static SectionRow> {
    Platform::SECTIONS.iter().find(|row| row.path == path)
}

/// The section that `path` and, if it is repeated, `name` denote.
fn find<'a>(platform: &'a Platform, path: &str, name: &str) -> Option<&'a dyn AnySection> {
    let (row, sections) = platform.sections().into_iter().find(|(row, _)| row.path == path)?;
    sections.into_iter().find(|section| !row.is_repeated || label(*section).as_deref() == Some(name))
}

/// As [`find`], to change the section.
fn find_mut<'a>(platform: &'a mut Platform, path: &str, name: &str) -> Option<&'a mut dyn AnySection> {
    let (row, sections) = platform.sections_mut().into_iter().find(|(row, _)| row.path == path)?;
    sections.into_iter().find(|section| !row.is_repeated || label(&**section).as_deref() == Some(name))
}
