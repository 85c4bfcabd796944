//! Conversations.

/// A message of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Who says it: "system", "user", "assistant", or what else the model's template knows.
    pub role: &'a str,
    /// What is said.
    pub content: &'a str,
}

impl<'a> Message<'a> {
    /// What the model is told before the conversation.
    pub fn system(content: &'a str) -> Self {
        Message { role: "system", content }
    }

    /// What the user says.
    pub fn user(content: &'a str) -> Self {
        Message { role: "user", content }
    }

    /// What the model said.
    pub fn assistant(content: &'a str) -> Self {
        Message { role: "assistant", content }
    }
}

fn write_text(text: &str, json: &mut String) {
    json.push('"');
    for character in text.chars() {
        match character {
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            control if control < ' ' => json.push_str(&format!("\\u{:04x}", control as u32)),
            other => json.push(other),
        }
    }
    json.push('"');
}

/// The variables of a chat template, with a prompt for an answer at the end.
pub(crate) fn to_json(messages: &[Message<'_>]) -> String {
    let mut json = String::from("{\"messages\":[");
    for (i, message) in messages.iter().enumerate() {
        json.push_str(if i > 0 { ",{\"role\":" } else { "{\"role\":" });
        write_text(message.role, &mut json);
        json.push_str(",\"content\":");
        write_text(message.content, &mut json);
        json.push('}');
    }
    json.push_str("],\"add_generation_prompt\":true}");
    json
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped() {
        let json = to_json(&[Message::user("a\"b\\c\n\u{1}é😀")]);
        let message = r#"{"role":"user","content":"a\"b\\c\u000a\u0001é😀"}"#;
        let wanted = format!("{{\"messages\":[{message}],\"add_generation_prompt\":true}}");
        assert_eq!(json, wanted);
    }
}
