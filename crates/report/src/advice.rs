//! Advice on methods, with neighbouring sizes of the same best method merged.

use lanemark_record::{Advice, Method};

/// The advice of one target and question.
pub(crate) struct Topic<'a> {
    /// The target's name.
    pub target: &'a str,
    /// The question, by its catalogue name.
    pub question: &'a str,
    /// Ranges of sizes, smallest first.
    pub stretches: Vec<Stretch<'a>>,
}

/// Neighbouring sizes with the same best method.
pub(crate) struct Stretch<'a> {
    /// The smallest and the largest size, in bytes.
    pub sizes: (u64, u64),
    /// The best method.
    pub method: &'a Method,
    /// The smallest and the greatest rate, in bytes per second.
    pub rates: (f64, f64),
    /// The smallest and the greatest factor over the slowest method.
    pub times: (f64, f64),
    /// The reason, from the largest size.
    pub reason: &'a str,
    /// Conditions under which the method is correct.
    pub rules: &'a [String],
}

impl<'a> Topic<'a> {
    /// Groups `advice` by target and question, in order of appearance.
    pub fn of(advice: &'a [Advice]) -> Vec<Topic<'a>> {
        let mut sorted: Vec<&Advice> = advice.iter().collect();
        sorted.sort_by_key(|advice| advice.size_bytes);
        let mut topics: Vec<Topic<'a>> = Vec::new();
        for first in advice {
            if topics.iter().any(|topic| (topic.target, topic.question) == (&*first.target, &*first.question)) {
                continue;
            }
            let mut topic = Topic { target: &first.target, question: &first.question, stretches: Vec::new() };
            for one in &sorted {
                if (&*one.target, &*one.question) == (topic.target, topic.question) {
                    topic.add(one);
                }
            }
            topics.push(topic);
        }
        topics
    }

    fn add(&mut self, advice: &'a Advice) {
        let (rate, times) = (advice.delivered_rate_bytes_per_s_median, advice.times_the_slowest);
        match self.stretches.last_mut() {
            Some(last) if *last.method == advice.method => {
                last.sizes.1 = advice.size_bytes;
                last.rates = (last.rates.0.min(rate), last.rates.1.max(rate));
                last.times = (last.times.0.min(times), last.times.1.max(times));
                last.reason = &advice.reason;
            }
            _ => self.stretches.push(Stretch {
                sizes: (advice.size_bytes, advice.size_bytes),
                method: &advice.method,
                rates: (rate, rate),
                times: (times, times),
                reason: &advice.reason,
                rules: &advice.rules,
            }),
        }
    }
}

impl Stretch<'_> {
    /// The sizes: `64 B to 512 B`.
    pub fn sizes_in_words(&self) -> String {
        span(self.sizes.0, self.sizes.1, crate::figures::size)
    }

    /// The rates: `3.05 GB/s to 12.4 GB/s`.
    pub fn rates_in_words(&self) -> String {
        span(self.rates.0, self.rates.1, crate::figures::rate)
    }

    /// The factors over the slowest method: `3.1x to 240x`.
    pub fn times_in_words(&self) -> String {
        span(self.times.0, self.times.1, crate::figures::times)
    }
}

fn span<T>(first: T, last: T, text: impl Fn(T) -> String) -> String {
    let (first, last) = (text(first), text(last));
    if first == last { first } else { format!("{first} to {last}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn neighbouring_sizes_with_the_same_best_method_are_merged() {
        let record = fixture::record();
        let topics = Topic::of(&record.advice);
        let lines: Vec<_> = topics[0]
            .stretches
            .iter()
            .map(|stretch| (stretch.sizes_in_words(), stretch.method.to_string(), stretch.rates_in_words()))
            .collect();
        let expected =
            [("64 B to 4 KiB", "WC movdir64b", "8.00 GB/s to 30.0 GB/s"), ("4 MiB", "WC nt32+sfence", "50.0 GB/s")];
        assert_eq!(lines, expected.map(|(a, b, c)| (a.to_owned(), b.to_owned(), c.to_owned())));
    }

    #[test]
    fn sizes_separated_by_another_best_method_are_not_merged() {
        let mut record = fixture::record();
        let mut again = record.advice[0].clone();
        again.size_bytes = 16 << 20;
        record.advice.insert(0, again);
        assert_eq!(Topic::of(&record.advice)[0].stretches.len(), 3);
    }
}
