//! Changed keys with several values each, and their combinations.

use crate::values::value_list;
use std::collections::HashSet;

/// How the values of several keys are combined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Combine {
    /// Every value with every other; the last key varies fastest.
    #[default]
    Product,
    /// The first values together, then the second ones, and so on. All keys have the same number of values, or one.
    Zip,
}

/// Keys of a platform with one or more values each, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Keys and their values.
    pub keys: Vec<(String, Vec<String>)>,
    /// How they are combined.
    pub combine: Combine,
}

impl Settings {
    /// Parses the value of one `--with`: `link.mps_bytes=128,256,link.skp=true`. A comma separates values, or begins
    /// the next key.
    ///
    /// ```
    /// use lanemark_sweep::Settings;
    /// let keys = Settings::parse_keys("link.mps_bytes=128,256,dma.tags=8..32*2").unwrap();
    /// assert_eq!(keys[0], ("link.mps_bytes".to_owned(), vec!["128".to_owned(), "256".to_owned()]));
    /// assert_eq!(keys[1].1, ["8", "16", "32"]);
    /// ```
    ///
    /// # Errors
    /// A sentence that says what to write.
    pub fn parse_keys(text: &str) -> Result<Vec<(String, Vec<String>)>, String> {
        let mut keys: Vec<(String, Vec<String>)> = Vec::new();
        for item in text.split(',') {
            let (key, value) = match item.split_once('=') {
                Some((key, value)) => (Some(key.trim()), value),
                None => (None, item),
            };
            let values = value_list(value).map_err(|error| error.to_string())?;
            match (key, keys.last_mut()) {
                (Some(""), _) | (None, None) => {
                    return Err("write KEY=VALUE, such as link.mps_bytes=256, or KEY=VALUE,VALUE".to_owned());
                }
                (Some(key), _) => keys.push((key.to_owned(), values)),
                (None, Some(last)) => last.1.extend(values),
            }
        }
        Ok(keys)
    }

    /// Checks that no key occurs twice, that no key has a value twice, and that keys to be combined in step have the
    /// same number of values.
    ///
    /// # Errors
    /// The key and a sentence.
    pub fn check(&self) -> Result<(), (String, String)> {
        let mut keys = HashSet::new();
        for (key, values) in &self.keys {
            if !keys.insert(key.as_str()) {
                return Err((key.clone(), "is given twice; give all its values in one list".to_owned()));
            }
            let mut seen = HashSet::new();
            if let Some(value) = values.iter().find(|value| !seen.insert(value.as_str())) {
                return Err((key.clone(), format!("lists {value} twice; keep one of them")));
            }
            if values.is_empty() {
                return Err((key.clone(), "has no value".to_owned()));
            }
        }
        if self.combine == Combine::Zip {
            let longest = self.longest();
            let other = self.keys.iter().find(|(_, values)| values.len() != 1 && values.len() != longest);
            if let Some((key, values)) = other {
                let message = format!(
                    "has {} values and another key has {longest}; keys that change together have the same number of \
                     values, or one",
                    values.len()
                );
                return Err((key.clone(), message));
            }
        }
        Ok(())
    }

    fn longest(&self) -> usize {
        self.keys.iter().map(|(_, values)| values.len()).max().unwrap_or(1)
    }

    /// Whether a key has several values.
    #[must_use]
    pub fn has_several(&self) -> bool {
        self.longest() > 1
    }

    /// Number of combinations; 1 without keys, and `None` above 2^64 - 1.
    #[must_use]
    pub fn len(&self) -> Option<u64> {
        match self.combine {
            Combine::Product => {
                self.keys.iter().try_fold(1_u64, |all, (_, values)| all.checked_mul(values.len() as u64))
            }
            Combine::Zip => Some(self.longest() as u64),
        }
    }

    /// Always false: without keys there is one combination, the platform as it is.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        false
    }

    /// The index of the value of each key in combination number `nth`, which is below [`len`](Settings::len).
    #[must_use]
    pub fn places(&self, nth: u64) -> Vec<usize> {
        let mut rest = nth;
        let mut places: Vec<usize> = Vec::with_capacity(self.keys.len());
        for (_, values) in self.keys.iter().rev() {
            let count = values.len().max(1) as u64;
            places.push(match self.combine {
                Combine::Product => {
                    let place = rest % count;
                    rest /= count;
                    place as usize
                }
                Combine::Zip => nth.min(count - 1) as usize,
            });
        }
        places.reverse();
        places
    }

    /// The keys and values of combination number `nth`.
    #[must_use]
    pub fn combination(&self, nth: u64) -> Vec<(String, String)> {
        let places = self.places(nth);
        let pair = |((key, values), place): (&(String, Vec<String>), usize)| {
            (key.clone(), values.get(place).cloned().unwrap_or_default())
        };
        self.keys.iter().zip(places).map(pair).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(text: &str, combine: Combine) -> Settings {
        Settings { keys: Settings::parse_keys(text).unwrap(), combine }
    }

    fn all(settings: &Settings) -> Vec<String> {
        let text = |nth| {
            let pairs = settings.combination(nth);
            pairs.iter().map(|(key, value)| format!("{key}{value}")).collect::<Vec<_>>().join(" ")
        };
        (0..settings.len().unwrap()).map(text).collect()
    }

    #[test]
    fn a_product_varies_the_last_key_fastest() {
        let product = settings("a=1,2,b=x,y", Combine::Product);
        assert_eq!(all(&product), ["a1 bx", "a1 by", "a2 bx", "a2 by"]);
        assert_eq!(all(&Settings::default()), [""]);
    }

    #[test]
    fn zipped_keys_change_together() {
        let zip = settings("a=1,2,b=x,y,c=7", Combine::Zip);
        assert_eq!(all(&zip), ["a1 bx c7", "a2 by c7"]);
        let (key, because) = settings("a=1,2,3,b=x,y", Combine::Zip).check().unwrap_err();
        assert!(key == "b" && because.contains("has 2 values"), "{key} {because}");
    }

    #[test]
    fn repeated_keys_and_values_are_refused() {
        assert!(settings("a=1,a=2", Combine::Product).check().is_err());
        assert!(settings("a=1,2,1", Combine::Product).check().is_err());
        assert!(settings("a=1..3+1", Combine::Product).check().is_ok());
        for text in ["256", "=1", "a", "a=1,,2", "a="] {
            assert!(Settings::parse_keys(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_product_beyond_64_bits_has_no_length() {
        let keys = (0..12).map(|key| (key.to_string(), (0..100).map(|value| value.to_string()).collect())).collect();
        assert_eq!(Settings { keys, combine: Combine::Product }.len(), None);
    }
}
