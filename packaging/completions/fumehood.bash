# shellcheck shell=bash
# The tab key in bash: the command knows its options, values and ids, and is asked for them (fumehood complete). It is the
# one in PATH that is asked, never one in a directory that somebody else may have filled.

_fumehood() {
	local cur word line value i
	local -a words typed
	local cword
	if declare -F _get_comp_words_by_ref >/dev/null; then
		_get_comp_words_by_ref -n =: cur words cword
	else
		cur=${COMP_WORDS[COMP_CWORD]} words=("${COMP_WORDS[@]}") cword=$COMP_CWORD
	fi
	COMPREPLY=()
	# Nothing that was typed is expanded or run: quotes are taken away, and a home directory is put in.
	for word in "${words[@]:1:cword-1}" "$cur"; do
		word=${word//[\\\'\"]/}
		[[ $word != \~/* ]] || word=$HOME/${word#\~/}
		typed+=("$word")
	done
	while IFS= read -r line; do
		case $line in
		:files | :dirs)
			value=$cur
			[[ $cur != -*=* ]] || value=${cur#*=}
			_fumehood_paths "$line" "$value"
			return
			;;
		:users)
			mapfile -t COMPREPLY < <(compgen -u -- "$cur")
			return
			;;
		:rest*)
			for ((i = 1; i < COMP_CWORD; i++)); do
				[[ ${COMP_WORDS[i]} == -- ]] && break
			done
			if declare -F _command_offset >/dev/null; then
				_command_offset $((i + 1))
			else
				_fumehood_paths :files "$cur"
			fi
			return
			;;
		*) COMPREPLY+=("${line%%$'\t'*}") ;;
		esac
	done < <(command fumehood complete -- "${typed[@]}" 2>/dev/null)
	# Readline replaces only what stands behind the last character that breaks a word.
	for i in '=' ':'; do
		if [[ $cur == *"$i"* && $COMP_WORDBREAKS == *"$i"* ]]; then
			word=${cur%"${cur##*"$i"}"}
			COMPREPLY=("${COMPREPLY[@]#"$word"}")
		fi
	done
}

_fumehood_paths() {
	local line
	compopt -o filenames 2>/dev/null
	while IFS= read -r line; do
		COMPREPLY+=("$line")
	done < <(if [[ $1 == :dirs ]]; then compgen -d -- "$2"; else compgen -f -- "$2"; fi)
}

complete -F _fumehood fumehood
