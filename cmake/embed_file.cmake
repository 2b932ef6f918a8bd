# cmake -DOUT=file.c -DFILE=any -DNAME=symbol -DHEADER=declares.h -P embed_file.cmake
# Writes a file as a C array: NAME, one byte an element and a 0 behind, and NAME_size.
file(READ ${FILE} hex HEX)
string(LENGTH "${hex}" digits)
math(EXPR size "${digits} / 2")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
string(REGEX REPLACE "((0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,))" "\\1\n    " bytes "${bytes}")
get_filename_component(name ${FILE} NAME)
file(WRITE ${OUT}.new
    "// Generated from ${name} by cmake/embed_file.cmake.\n"
    "#include \"${HEADER}\"\n\n"
    "const char ${NAME}[] = {\n    ${bytes}0};\n"
    "const size_t ${NAME}_size = ${size};\n")
file(RENAME ${OUT}.new ${OUT})
