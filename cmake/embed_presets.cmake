# cmake -DOUT=file.c -DDIR=isa/presets -P embed_presets.cmake
# Writes the presets as a C file: one byte array each (string literals of this length are not portable C17)
# and the table hw_presets.
file(GLOB files ${DIR}/*.yaml)
list(SORT files)
set(arrays "")
set(rows "")
set(i 0)
foreach(file IN LISTS files)
    get_filename_component(name ${file} NAME_WE)
    file(READ ${file} hex HEX)
    string(LENGTH "${hex}" digits)
    math(EXPR size "${digits} / 2")
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
    string(REGEX REPLACE "((0x..,){16})" "\\1\n    " bytes "${bytes}")
    string(APPEND arrays "static const char preset_${i}[] = {\n    ${bytes}0};\n")
    string(APPEND rows "    {\"${name}\", preset_${i}, ${size}},\n")
    math(EXPR i "${i} + 1")
endforeach()
file(WRITE ${OUT}.new
    "// Generated from isa/presets by cmake/embed_presets.cmake.\n"
    "#include \"runtime/base/hw_yaml.h\"\n\n${arrays}\n"
    "const struct hw_preset hw_presets[] = {\n${rows}};\n"
    "const int hw_npreset = ${i};\n")
file(RENAME ${OUT}.new ${OUT})
