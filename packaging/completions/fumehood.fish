# The tab key in fish: the command knows its options, values and ids, and is asked for them (fumehood complete). It is the one
# in PATH that is asked, never one in a directory that somebody else may have filled.

function __fumehood_complete
    set -l typed (commandline -opc)
    set -l current (commandline -ct)
    set -l plain (string unescape -- "$current"; or echo -- "$current")
    # An empty list would take every path with it.
    set -l before (string match -r -- '^-[^=]*=' "$current"; or echo)
    set -l value (string replace -r -- '^-[^=]*=' '' "$current")
    for line in (command fumehood complete -- $typed[2..] "$plain" 2>/dev/null)
        switch $line
            case :files
                for path in (__fish_complete_path "$value")
                    echo -- $before$path
                end
            case :dirs
                for path in (__fish_complete_directories "$value")
                    echo -- $before$path
                end
            case :users
                __fish_complete_users
            case ':rest *'
                # It counts from 0, with the name of the command.
                set -l first (math (string replace ':rest ' '' -- $line) + 1)
                set -l rest
                if test (count $typed) -ge $first
                    set rest (string escape -- $typed[$first..])
                end
                complete -C (string join ' ' -- $rest "$current")
            case '*'
                echo -- $line
        end
    end
end

complete -c fumehood -f -a '(__fumehood_complete)'
