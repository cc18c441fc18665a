#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| tautline_fuzz::targets::counters::run(data));
