#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes the C++ source with the style and the script of `hcasim trace report`'s pages: embed.py OUT.cpp FILE.css FILE.js..."""
import base64
import hashlib
import re
import sys


def literal(text):
    return "".join(f'R"hcasim({line})hcasim" "\\n"\n' for line in text.splitlines()) or '""'


out, *files = sys.argv[1:]
style = script = ""
for name in files:
    with open(name, encoding="utf-8") as file:
        text = file.read()
    # The licence stands here; comments are not what a page's reader needs.
    if name.endswith(".css"):
        style += re.sub(r"/\*.*?\*/\n?", "", text, flags=re.S)
    else:
        script += re.sub(r"^ *//.*\n", "", text, flags=re.M)
script = f'"use strict";\n(() => {{\n{script}}})();\n'
for text, wrong in (style, ("</", "<!")), (script, ("</script", "<!--", "<script", "innerHTML", "\r")):
    for part in wrong:
        if part in text: sys.exit(f"embed.py: '{part}' may not stand in the page's files")
digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
with open(out, "w", encoding="utf-8") as file:
    file.write(f"""// Made by traces/page/embed.py
#include "traces/page.h"
namespace hcasim::traces {{
const PageParts kPageParts = {{
{literal(style)},
{literal(script)},
"{digest}"}};
}}
""")
