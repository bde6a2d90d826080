//! Arithmetic expressions over figures: `0.5*(T5 + 3)`, `T7/T16:remote`.

/// Evaluates `text`, with the values of IDs from `value`.
///
/// An expression consists of numbers, IDs (a letter, then letters, digits and `:`), `+ - * /` and parentheses.
///
/// # Errors
/// The position of a syntax error, the ID without a value, or a division by zero.
pub(crate) fn evaluate(text: &str, value: &dyn Fn(&str) -> Option<f64>) -> Result<f64, String> {
    let mut parser = Parser { text, at: 0, value };
    let result = parser.sum()?;
    parser.skip_spaces();
    if parser.at < text.len() {
        return Err(format!("syntax error at '{}' in '{text}'", &text[parser.at..]));
    }
    if result.is_finite() { Ok(result) } else { Err(format!("'{text}' divides by zero")) }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    value: &'a dyn Fn(&str) -> Option<f64>,
}

impl Parser<'_> {
    fn skip_spaces(&mut self) {
        self.at += self.text[self.at..].len() - self.text[self.at..].trim_start().len();
    }

    fn take(&mut self, wanted: char) -> bool {
        self.skip_spaces();
        let found = self.text[self.at..].starts_with(wanted);
        self.at += usize::from(found);
        found
    }

    fn sum(&mut self) -> Result<f64, String> {
        let mut total = self.product()?;
        loop {
            if self.take('+') {
                total += self.product()?;
            } else if self.take('-') {
                total -= self.product()?;
            } else {
                return Ok(total);
            }
        }
    }

    fn product(&mut self) -> Result<f64, String> {
        let mut total = self.factor()?;
        loop {
            if self.take('*') {
                total *= self.factor()?;
            } else if self.take('/') {
                total /= self.factor()?;
            } else {
                return Ok(total);
            }
        }
    }

    fn factor(&mut self) -> Result<f64, String> {
        if self.take('(') {
            let inner = self.sum()?;
            return if self.take(')') { Ok(inner) } else { Err(format!("a ')' is missing in '{}'", self.text)) };
        }
        self.skip_spaces();
        let rest = &self.text[self.at..];
        let is_id = rest.starts_with(|c: char| c.is_ascii_alphabetic());
        let end = rest
            .find(
                |c: char| {
                    if is_id { !(c.is_ascii_alphanumeric() || c == ':') } else { !(c.is_ascii_digit() || c == '.') }
                },
            )
            .unwrap_or(rest.len());
        let word = &rest[..end];
        self.at += end;
        if is_id {
            (self.value)(word).ok_or_else(|| format!("{word} has no value in '{}'", self.text))
        } else {
            word.parse().map_err(|_| format!("a number is missing at '{rest}' in '{}'", self.text))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(id: &str) -> Option<f64> {
        match id {
            "T5" => Some(441.0),
            "F1:burst:64" => Some(0.5),
            _ => None,
        }
    }

    #[test]
    fn operators_have_the_usual_precedence() {
        for (text, result) in [("1+2*3", 7.0), ("(1+2)*3", 9.0), ("8/4/2", 1.0), ("5-2-1", 2.0), ("3 * T5", 1323.0)] {
            assert_eq!(evaluate(text, &value), Ok(result), "{text}");
        }
        assert_eq!(evaluate("F1:burst:64*2", &value), Ok(1.0));
    }

    #[test]
    fn invalid_expressions_are_rejected() {
        for text in ["", "1+", "(1", "T6", "1 2", "1/0", "2)"] {
            assert!(evaluate(text, &value).is_err(), "{text}");
        }
    }
}
