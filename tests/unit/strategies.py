"""Strings and values that have broken YAML writers before, and everything else."""

from hypothesis import strategies as st

NASTY = (
    "", " ", "\n", "\n\n", "a\nb", "a\r\nb", "\r", "\t", ": ", "a: b", "# no comment", " #", "{{",
    "}}", "{{ job.name }}", "{% if x %}", "{# x #}", "'", '"', "\\", "\\n", "---", "...", "--- a",
    "- a",
    "? a", "a:", "&a", "*a", "!a", "!!int 1", "|", ">", "@", "`", "%YAML 1.1", "[", "]",
    "{", "}", ",",
    "yes", "no", "on", "off", "y", "n", "true", "null", "~", "1", "1.0", "1e3", "0o7", "0777",
    "1_000", "1:30", "0x1F", ".inf", ".nan", "2020-01-01", "2020-01-01T00:00:00Z",
    "<<", "=", "\x7f", "\x80",
    "\x85", "\xa0", "\u2028", "\u2029", "\ufeff",
    "\ufffe", "\uffff", "\ufffd",
    "\U0001f600",
    "\U0010ffff",
    "\x00", "\x01", "\x1b[31m", "$(HOME)", "$$", "$", " leading", "trailing ", "a\n\n", "\n a",
    "x" * 1100, "é" * 300, "a: " * 400, "\u2028" * 300,
)  # fmt: skip

any_text = st.one_of(
    st.sampled_from(NASTY),
    st.text(st.characters(codec="utf-8"), max_size=60),
    st.builds("{}{}{}".format, *[st.sampled_from(NASTY)] * 3),
    st.builds(
        lambda part, times: part * times,
        st.text(st.characters(codec="utf-8"), min_size=1, max_size=4),
        st.integers(200, 1500),
    ),
)
process_text = any_text.map(lambda text: text.replace("\0", ""))
"""What a process can be given: anything without NUL."""

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | any_text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(any_text, inner, max_size=4),
    max_leaves=12,
)
