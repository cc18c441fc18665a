use super::*;

#[test]
fn paths_of_counters_files_name_the_process_and_the_copy() {
    for (path, expected) in [
        ("/run/user/1000/tautline/17", Some((17, 0))),
        ("/tmp/tautline-1000/17.2", Some((17, 2))),
        ("/run/orders/tautline/17 (deleted)", Some((17, 0))),
        ("/tmp/tautline-x/17", None),
        ("/tmp/tautline/17.tap", None),
        ("/tmp/other/17", None),
        ("/tautline", None),
        ("socket:[17]", None),
        ("tautline/", None),
    ] {
        assert_eq!(counters_file(path), expected, "{path}");
    }
}

#[test]
fn a_status_has_the_effective_user_and_the_inner_number() {
    let text = "Name:\tx\nPid:\t4711\nUid:\t0\t1000\t0\t0\nNSpid:\t4711\t17\n";
    let status = Status::parse(text).unwrap();
    assert_eq!((status.user, status.own_pid), (1000, 17));
    assert_eq!(Status::parse("Pid:\t4711\nUid:\t7\t7\t7\t7\n").unwrap().own_pid, 4711);
    assert!(Status::parse("").is_none() && Status::parse("Uid:\tx\n").is_none());
}

#[test]
fn only_open_files_are_read_through_their_process() {
    assert!(is_open_file(Path::new("/proc/4711/fd/9")));
    assert!(!is_open_file(Path::new("/tmp/fd/9")) && !is_open_file(Path::new("/proc/4711/stat")));
}
