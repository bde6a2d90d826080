//! A headless browser, told what to do over two pipes: the `DevTools` protocol.

use crate::root;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Longest wait for a page.
const PATIENCE: Duration = Duration::from_secs(30);
/// Longest silence of the browser during a call.
const SILENCE: Timespec = Timespec { tv_sec: 120, tv_nsec: 0 };

/// A running browser with one page.
pub struct Browser {
    child: Child,
    commands: File,
    replies: File,
    /// What has been read of the replies and belongs to no message yet.
    unread: Vec<u8>,
    last: u64,
    session: Option<String>,
    /// Requests, exceptions and messages of the console so far.
    events: Vec<Value>,
    _folder: TempDir,
}

/// Whether the browser has been unpacked, or the reason why not.
///
/// # Errors
/// Name of the missing program, and the command that unpacks it.
pub fn is_here() -> Result<(), String> {
    if root().join(PROGRAM).exists() { Ok(()) } else { Err("a browser: make test-browser".to_owned()) }
}

const PROGRAM: &str = ".tools/chromium/root/usr/lib/chromium/chromium-headless-shell";

impl Browser {
    /// Starts a browser with an empty page of this width.
    ///
    /// # Panics
    /// If it does not start.
    #[must_use]
    pub fn start(width: u32, is_dark: bool) -> Browser {
        let folder = tempfile::tempdir().expect("a folder for the profile");
        let [commands, replies] = ["commands", "replies"].map(|name| folder.path().join(name));
        let made = Command::new("mkfifo").arg(&commands).arg(&replies).status();
        assert!(made.is_ok_and(|status| status.success()), "mkfifo");
        let unpacked = root().join(".tools/chromium/root");
        let libraries = ["usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu/pulseaudio"];
        let libraries = libraries.map(|folder| unpacked.join(folder).display().to_string()).join(":");
        let child = Command::new("sh")
            .args(["-c", "exec \"$0\" --remote-debugging-pipe --no-sandbox --hide-scrollbars --user-data-dir=\"$1\" 3<\"$2\" 4>\"$3\""])
            .arg(root().join(PROGRAM))
            .args([&folder.path().join("profile"), &commands, &replies])
            .env("LD_LIBRARY_PATH", libraries)
            .env("FONTCONFIG_SYSROOT", &unpacked)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the browser starts");
        let commands = OpenOptions::new().write(true).open(&commands).expect("the pipe of commands");
        let replies = File::open(&replies).expect("the pipe of replies");
        let (unread, session, events) = (Vec::new(), None, Vec::new());
        let mut browser = Browser { child, commands, replies, unread, last: 0, session, events, _folder: folder };
        let target = browser.call("Target.createTarget", &json!({"url": "about:blank"}))["targetId"].clone();
        let attached = browser.call("Target.attachToTarget", &json!({"targetId": target, "flatten": true}));
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), &json!({}));
        }
        let size = json!({"width": width, "height": 4000, "deviceScaleFactor": 1, "mobile": width < 500});
        browser.call("Emulation.setDeviceMetricsOverride", &size);
        let scheme = json!([{"name": "prefers-color-scheme", "value": if is_dark { "dark" } else { "light" }}]);
        browser.call("Emulation.setEmulatedMedia", &json!({"features": scheme}));
        browser
    }

    /// Calls a method of the protocol and returns its result.
    ///
    /// # Panics
    /// If the browser has ended or is silent for two minutes, or the call fails.
    pub fn call(&mut self, method: &str, parameters: &Value) -> Value {
        self.last += 1;
        let mut message = json!({"id": self.last, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.commands.write_all(format!("{message}\0").as_bytes()).expect("the browser reads commands");
        loop {
            let reply = self.next_message(method);
            if reply["id"] == self.last {
                assert!(reply["error"].is_null(), "{method}: {}", reply["error"]);
                return reply["result"].clone();
            }
            self.events.push(reply);
        }
    }

    /// The next message of the browser, which ends with a zero byte.
    fn next_message(&mut self, method: &str) -> Value {
        loop {
            if let Some(end) = self.unread.iter().position(|&byte| byte == 0) {
                let message: Vec<u8> = self.unread.drain(..=end).collect();
                return serde_json::from_slice(&message[..end]).expect("a message is JSON");
            }
            let ready = poll(&mut [PollFd::new(&self.replies, PollFlags::IN)], Some(&SILENCE));
            assert_ne!(ready, Ok(0), "the browser has been silent for {} s at {method}", SILENCE.tv_sec);
            let mut bytes = [0; 1 << 16];
            let length = self.replies.read(&mut bytes).expect("the browser replies");
            assert_ne!(length, 0, "the browser has ended at {method}");
            self.unread.extend(&bytes[..length]);
        }
    }

    /// Opens a file, with a fragment such as `#what-if:`, and waits until its sliders work. Returns the time that it took.
    ///
    /// # Panics
    /// If they do not within half a minute.
    pub fn open(&mut self, file: &Path, fragment: &str) -> Duration {
        self.open_until(file, fragment, "document.querySelector('[data-live]')?.dataset.isReady === 'true'")
    }

    /// Opens a file with a fragment, and waits until it is complete and an expression is true in it. Returns the time that it took.
    ///
    /// # Panics
    /// If that is not so within half a minute.
    pub fn open_until(&mut self, file: &Path, fragment: &str, is_ready: &str) -> Duration {
        // A new fragment alone would not load the page again.
        self.call("Page.navigate", &json!({"url": "about:blank"}));
        self.events.clear();
        let begun = Instant::now();
        self.call("Page.navigate", &json!({"url": format!("file://{}{fragment}", file.display())}));
        let ready = format!("document.readyState === 'complete' && ({is_ready})");
        while self.value(&ready) != true {
            assert!(begun.elapsed() < PATIENCE, "{is_ready} is not true: {:?}", self.complaints());
            std::thread::sleep(Duration::from_millis(5));
        }
        begun.elapsed()
    }

    /// The value of an expression in the page.
    ///
    /// # Panics
    /// If it throws.
    pub fn value(&mut self, expression: &str) -> Value {
        let parameters = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let result = self.call("Runtime.evaluate", &parameters);
        assert!(result["exceptionDetails"].is_null(), "{expression}: {}", result["exceptionDetails"]);
        result["result"]["value"].clone()
    }

    /// Presses a key in the element that has the focus, and waits for the next frame.
    pub fn press(&mut self, key: &str, code: u32) {
        for kind in ["keyDown", "keyUp"] {
            let event = json!({"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code});
            self.call("Input.dispatchKeyEvent", &event);
        }
        self.value("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))");
    }

    /// The picture of the first element that matches a selector, as coarse cells.
    ///
    /// # Panics
    /// If there is none.
    pub fn cells(&mut self, selector: &str, columns: u32, rows: u32) -> Vec<Vec<u32>> {
        let place = self.value(&format!(
            "(() => {{ const r = document.querySelector({}).getBoundingClientRect(); \
             return [r.x + scrollX, r.y + scrollY, r.width, r.height]; }})()",
            json!(selector)
        ));
        let place: [f64; 4] = serde_json::from_value(place).expect("a place");
        let shot = self.screenshot(place);
        self.cells_of(&shot, columns, rows)
    }

    /// A part of the page as a PNG in base64: left, top, width and height.
    pub fn screenshot(&mut self, [x, y, width, height]: [f64; 4]) -> String {
        let clip = json!({"x": x, "y": y, "width": width, "height": height, "scale": 1});
        let shot = self.call("Page.captureScreenshot", &json!({"clip": clip, "captureBeyondViewport": true}));
        shot["data"].as_str().unwrap_or_default().to_owned()
    }

    /// A PNG in base64 as coarse cells: the mean distance of the pixels of each from the first pixel, 0 to 99, by row.
    ///
    /// # Panics
    /// If it is no PNG.
    pub fn cells_of(&mut self, png: &str, columns: u32, rows: u32) -> Vec<Vec<u32>> {
        let cells = self.value(&format!(
            "(async () => {{
                const bytes = Uint8Array.from(atob('{png}'), (letter) => letter.charCodeAt(0));
                const picture = await createImageBitmap(new Blob([bytes], {{ type: 'image/png' }}));
                const canvas = new OffscreenCanvas(picture.width, picture.height), context = canvas.getContext('2d');
                context.drawImage(picture, 0, 0);
                const pixels = context.getImageData(0, 0, picture.width, picture.height).data;
                const cells = Array.from({{ length: {rows} }}, () => Array.from({{ length: {columns} }}, () => [0, 0]));
                for (let y = 0; y < picture.height; y += 1) for (let x = 0; x < picture.width; x += 1) {{
                    const at = (y * picture.width + x) * 4;
                    const cell = cells[Math.floor(y * {rows} / picture.height)][Math.floor(x * {columns} / picture.width)];
                    for (const channel of [0, 1, 2]) cell[0] += Math.abs(pixels[at + channel] - pixels[channel]) / 3;
                    cell[1] += 1;
                }}
                return cells.map((row) => row.map(([sum, count]) => Math.min(99, Math.round(sum / count / 2.55))));
            }})()"
        ));
        serde_json::from_value(cells).expect("rows of numbers")
    }

    /// Exceptions, messages of the console and failed loads since the page was opened.
    #[must_use]
    pub fn complaints(&self) -> Vec<String> {
        let is_one = |event: &&Value| {
            let kinds =
                ["Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded", "Network.loadingFailed"];
            kinds.iter().any(|kind| event["method"] == *kind)
        };
        self.events.iter().filter(is_one).map(Value::to_string).collect()
    }

    /// The addresses that the page requested since it was opened, with its own.
    #[must_use]
    pub fn requests(&self) -> Vec<String> {
        let events = self.events.iter().filter(|event| event["method"] == "Network.requestWillBeSent");
        events.map(|event| event["params"]["request"]["url"].as_str().unwrap_or_default().to_owned()).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The browser may have ended already: then there is nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
